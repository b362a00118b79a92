// PowerSGD (Vogels et al. 2019, algorithm 1): one step of power iteration from the last step's
// factor. Two combined rounds: P = mean(M Q), orthonormalised, then Q = mean(M^T P); the average is
// P Q^T. Wrap it in error_feedback.
//
// The warm start is kept orthonormal: the span of M Q is the same as for the averaged Q itself,
// while products of two steps' magnitudes, which overflow, never appear. Tensors of fewer than two
// dimensions, and those that the factors would not make smaller, travel dense.
#include <algorithm>

#include "compressors/api/registry.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "kernels/low_rank.h"

namespace slimgrad {
namespace {

struct Shape {
  std::size_t rows = 0, cols = 0, rank = 0;  // rank 0: dense
};

class PowerSgd {
 public:
  struct State {
    Shape shape;
    Buffer<float> warm;  // cols x rank, orthonormal: where the next step's iteration starts
    Buffer<float> p;     // rows x rank, orthonormal, within a step
    Buffer<float> q;     // cols x rank, averaged, within a step
    void Fields(FieldVisitor& visit) { visit("warm", warm); }
  };

  explicit PowerSgd(std::size_t rank) : rank_(rank) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    const Shape s = ShapeOf(tensor);
    const auto mean = [](std::size_t count) {
      return Round::Combine(kernels::CombineOp::kMean, DType::kF32, count);
    };
    Plan plan = {.traits = {.fixed_size = true}};
    if (s.rank > 0) {
      plan.rounds = {mean(s.rows * s.rank), mean(s.cols * s.rank)};
    } else {
      plan.rounds = {mean(tensor.numel())};
      plan.dense_reason = tensor.shape.size() < 2 ? "not a matrix" : "factors would not be smaller";
    }
    return plan;
  }

  State Init(const Context& context) const {
    const Shape s = ShapeOf(*context.tensor);
    Memory& memory = *context.backend.memory;
    State state = {s, Buffer<float>(s.cols * s.rank, memory),
                   Buffer<float>(s.rows * s.rank, memory), Buffer<float>(s.cols * s.rank, memory)};
    // All columns of zeros are replaced by random directions, the same on every rank.
    kernels::Orthonormalize(context.backend, *context.scratch, s.cols, s.rank,
                            context.SharedKey("power_sgd.start"), state.warm.span());
    return state;
  }

  void Send(int round, In x, State& state, const Context& context, Payload& payload) const {
    const auto [rows, cols, rank] = state.shape;
    if (rank == 0) {
      kernels::Copy(context.backend, x, payload.Add<float>(Tag::kValue, x.size()));
    } else if (round == 0) {
      kernels::MultiplyRight(context.backend, *context.scratch, x, rows, cols, state.warm.span(),
                             rank, payload.Add<float>(Tag::kValue, rows * rank));
    } else {
      kernels::MultiplyLeft(context.backend, *context.scratch, x, rows, cols, state.p.span(), rank,
                            payload.Add<float>(Tag::kValue, cols * rank));
    }
  }

  Status Receive(int round, const Inbox& inbox, State& state, const Context& context,
                 Out average) const {
    const auto [rows, cols, rank] = state.shape;
    const Backend& backend = context.backend;
    if (rank == 0) {
      if (average.empty()) return {};
      SLIMGRAD_ASSIGN_OR_RETURN(const In mean,
                                inbox.payloads[0].Get<float>(Tag::kValue, average.size()));
      kernels::Copy(backend, mean, average);
      return {};
    }
    SLIMGRAD_RETURN_IF_ERROR(TakeFactor(round, inbox, state, context));
    if (round == 0 || average.empty()) return {};
    kernels::Outer(backend, *context.scratch, state.p.span(), state.q.span(), rows, cols, rank,
                   average);
    return {};
  }

  // What went into the average is P Q^T with the averaged Q, the same share for every rank.
  Status SubtractSent(const PayloadView& own, State& state, const Context& context, Out y) const {
    const auto [rows, cols, rank] = state.shape;
    if (rank > 0) {
      kernels::AddOuter(context.backend, *context.scratch, state.p.span(), state.q.span(), rows,
                        cols, rank, -1.0F, y);
      return {};
    }
    SLIMGRAD_ASSIGN_OR_RETURN(const In values, own.Get<float>(Tag::kValue, y.size()));
    kernels::AddScaled(context.backend, values, -1.0F, y);
    return {};
  }

  void SendFeedback(int round, In x, Out residual, State& state, const Context& context,
                    Payload& payload) const {
    const auto [rows, cols, rank] = state.shape;
    if (round == 0 && rank > 0) {
      kernels::MultiplyRightFeedback(context.backend, *context.scratch, x, residual, rows, cols,
                                     state.warm.span(), rank,
                                     payload.Add<float>(Tag::kValue, rows * rank));
      return;
    }
    if (round == 0) kernels::AddSaturated(context.backend, x, residual);
    Send(round, residual, state, context, payload);
  }

  Status ReceiveFeedback(int round, bool last, const Inbox& inbox, State& state,
                         const Context& context, Out residual, Out average) const {
    const auto [rows, cols, rank] = state.shape;
    if (!last || rank == 0 || average.empty()) {
      SLIMGRAD_RETURN_IF_ERROR(Receive(round, inbox, state, context, average));
      return last ? SubtractSent(inbox.own, state, context, residual) : Status();
    }
    SLIMGRAD_RETURN_IF_ERROR(TakeFactor(round, inbox, state, context));
    kernels::OuterFeedback(context.backend, *context.scratch, state.p.span(), state.q.span(), rows,
                           cols, rank, average, residual);
    return {};
  }

 private:
  // The averaged factor of a round: P, orthonormalised, or Q, from which the next step starts.
  Status TakeFactor(int round, const Inbox& inbox, State& state, const Context& context) const {
    const auto [rows, cols, rank] = state.shape;
    const Out basis = round == 0 ? state.p.span() : state.warm.span();
    SLIMGRAD_ASSIGN_OR_RETURN(const In mean,
                              inbox.payloads[0].Get<float>(Tag::kValue, basis.size()));
    kernels::Copy(context.backend, mean, basis);
    if (round > 0) kernels::Copy(context.backend, mean, state.q.span());
    kernels::Orthonormalize(context.backend, *context.scratch, round == 0 ? rows : cols, rank,
                            context.SharedKey(round == 0 ? "power_sgd.p" : "power_sgd.q"), basis);
    return {};
  }

  Shape ShapeOf(const TensorSpec& tensor) const {
    const std::size_t n = tensor.numel();
    if (tensor.shape.size() < 2 || n == 0) return {};
    const auto rows = static_cast<std::size_t>(tensor.shape[0]);
    const std::size_t cols = n / rows;
    const std::size_t rank = std::min({rank_, rows, cols});
    if (rank * (rows + cols) >= n) return {};
    return {rows, cols, rank};
  }

  std::size_t rank_;
};

SLIMGRAD_METHOD(power_sgd) {
  return {.summary = "low rank by a warm-started power iteration",
          .reference = "Vogels et al. 2019",
          .parameters = {Integer("rank").Default(2).AtLeast(1).AtMost(64).Doc(
              "columns of the factors")},
          .example = "power_sgd(rank=2)",
          .make = [](const Arguments& a) -> Result<Compressor> {
            return Compressor(PowerSgd(a.Size("rank")));
          }};
}

}  // namespace
}  // namespace slimgrad
