// small_tensors(C, below=N, use=D): tensors of fewer than N elements go through D instead of C.
// Biases and norms are a hundredth of the bytes and most of the harm.
#include "compressors/api/registry.h"

namespace slimgrad {
namespace {

class SmallTensors {
 public:
  using State = slimgrad::State;

  SmallTensors(Compressor large, std::size_t below, Compressor small)
      : large_(std::move(large)), below_(below), small_(std::move(small)) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    SLIMGRAD_ASSIGN_OR_RETURN(Plan plan, For(tensor).MakePlan(tensor));
    if (&For(tensor) == &small_ && plan.traits.exact && plan.dense_reason.empty())
      plan.dense_reason = "fewer than " + std::to_string(below_) + " elements";
    return plan;
  }
  State Init(const Context& context) const { return For(*context.tensor).Init(context); }
  void Send(int round, In x, State& state, const Context& context, Payload& payload) const {
    For(*context.tensor).Send(round, x, state, context, payload);
  }
  Status Receive(int round, const Inbox& inbox, State& state, const Context& context,
                 Out average) const {
    return For(*context.tensor).Receive(round, inbox, state, context, average);
  }
  Status SubtractSent(const PayloadView& own, State& state, const Context& context, Out y) const {
    return For(*context.tensor).SubtractSent(own, state, context, y);
  }
  void SendFeedback(int round, In x, Out residual, State& state, const Context& context,
                    Payload& payload) const {
    For(*context.tensor).SendFeedback(round, x, residual, state, context, payload);
  }
  Status ReceiveFeedback(int round, bool last, const Inbox& inbox, State& state,
                         const Context& context, Out residual, Out average) const {
    return For(*context.tensor)
        .ReceiveFeedback(round, last, inbox, state, context, residual, average);
  }

 private:
  const Compressor& For(const TensorSpec& tensor) const {
    return tensor.numel() < below_ ? small_ : large_;
  }

  Compressor large_;
  std::size_t below_;
  Compressor small_;
};

SLIMGRAD_METHOD(small_tensors) {
  return {.summary = "another compressor for small tensors",
          .reference = "usual in Horovod, CGX and PowerSGD",
          .parameters =
              {Integer("below").Default(1024).AtLeast(1).Doc("tensors of fewer elements are small"),
               CompressorParameter("use").Default("none").Doc("what small tensors go through")},
          .example = "small_tensors(error_feedback(top_k(ratio=0.01)),below=1024,use=none)",
          .wrap = [](const Arguments& a) -> Result<Compressor> {
            return Compressor(SmallTensors(a.inner(), a.Size("below"), a.Child("use")));
          }};
}

}  // namespace
}  // namespace slimgrad
