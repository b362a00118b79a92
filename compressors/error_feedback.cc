// error_feedback(C): sends C(g + e) and keeps e = g + e - what was sent (Seide et al. 2014;
// Karimireddy et al. 2019, algorithm 2), in units of the gradient. Nothing is lost: what was
// averaged plus what is kept is what came in.
#include <string>

#include "compressors/api/registry.h"

namespace slimgrad {
namespace {

class ErrorFeedback {
 public:
  struct State {
    Buffer<float> residual;  // within a step: the corrected gradient g + e
    slimgrad::State inner;
    std::size_t rounds = 0;  // of the inner plan
    void Fields(FieldVisitor& visit) {
      visit("residual", residual);
      visit("inner", inner);
    }
  };

  explicit ErrorFeedback(Compressor inner) : inner_(std::move(inner)) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    SLIMGRAD_ASSIGN_OR_RETURN(Plan plan, inner_.MakePlan(tensor));
    // The inner claims are about g + e; with memory, no single step is unbiased or contractive in
    // g.
    plan.traits = {.fixed_size = plan.traits.fixed_size, .exact = plan.traits.exact};
    return plan;
  }

  State Init(const Context& context) const {
    const Result<Plan> plan = inner_.MakePlan(*context.tensor);
    SLIMGRAD_CHECK(plan.ok());  // the driver has asked before
    return {Buffer<float>(context.tensor->numel(), *context.backend.memory), inner_.Init(context),
            plan->rounds.size()};
  }

  void Send(int round, In x, State& state, const Context& context, Payload& payload) const {
    inner_.SendFeedback(round, x, state.residual.span(), state.inner, context, payload);
  }

  Status Receive(int round, const Inbox& inbox, State& state, const Context& context,
                 Out average) const {
    const bool last = static_cast<std::size_t>(round) + 1 == state.rounds;
    return inner_.ReceiveFeedback(round, last, inbox, state.inner, context, state.residual.span(),
                                  average);
  }

  Status SubtractSent(const PayloadView& own, State& state, const Context& context, Out y) const {
    return inner_.SubtractSent(own, state.inner, context, y);
  }

 private:
  Compressor inner_;
};

SLIMGRAD_METHOD(error_feedback) {
  return {.summary = "carries what was not sent to the next step",
          .reference = "Seide et al. 2014; Karimireddy et al. 2019",
          .example = "error_feedback(top_k(ratio=0.01)|delta_index)",
          .wrap = [](const Arguments& a) -> Result<Compressor> {
            // Two memories of one error each add it to the next gradient, and what is twice in it
            // grows without bound.
            if (a.inner().spec().find("error_feedback(") != std::string::npos)
              return InvalidArgument("error_feedback: expected no other one within, found " +
                                     a.inner().spec());
            // What was lost of an infinity is infinite, and stays so.
            if (a.inner().spec().find("overflow=inf") != std::string::npos)
              return InvalidArgument("error_feedback: expected overflow=saturate within, found " +
                                     a.inner().spec());
            return Compressor(ErrorFeedback(a.inner()));
          }};
}

}  // namespace
}  // namespace slimgrad
