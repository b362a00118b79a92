#include "sim/replay_run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "kernels/combine.h"
#include "kernels/elementwise.h"
#include "kernels/sums.h"

namespace slimgrad::sim {
namespace {

// 2-norm of all fields named "residual" of one rank.
double ResidualNorm(const Backend& backend, Exchange& exchange, std::size_t rank, bool* found) {
  struct Visitor final : FieldVisitor {
    void Field(const std::string& path, DType dtype, std::span<std::byte> bytes, Memory&) override {
      if (dtype != DType::kF32 || !(path == "residual" || path.ends_with("/residual"))) return;
      found = true;
      squares += kernels::SumSquares(
          *backend, {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4});
    }
    const Backend* backend = nullptr;
    bool found = false;
    double squares = 0;
  } visitor;
  visitor.backend = &backend;
  for (std::size_t t = 0; t < exchange.tensors().size(); ++t)
    exchange.state(rank, t).Fields(visitor);
  *found |= visitor.found;
  return std::sqrt(visitor.squares);
}

// What `none` would make of the gradients: the average that compressors are measured against.
void AverageExactly(const Backend& backend, std::span<const std::span<const ConstView>> gradients,
                    const TensorSet& average) {
  std::vector<std::span<const std::byte>> inputs(gradients.size());
  for (std::size_t t = 0; t < average.outs().size(); ++t) {
    for (std::size_t w = 0; w < gradients.size(); ++w)
      inputs[w] = std::as_bytes(gradients[w][t].As<float>());
    kernels::Combine(backend, kernels::CombineOp::kMean, DType::kF32, inputs,
                     std::as_writable_bytes(average.outs()[t]));
  }
}

class Run {
 public:
  Run(const Trace& trace, Exchange& exchange, GradientSource& source, const ReplayOptions& options,
      RunResult& result)
      : trace_(trace),
        exchange_(exchange),
        source_(source),
        options_(options),
        result_(result),
        average_(trace.tensors()),
        exact_(trace.tensors()),
        optimizer_(trace.schema().optimizer, trace.tensors()) {
    if (trace.initial_weights().empty()) return;
    result_.weights.emplace(trace.tensors());
    result_.weights->Assign(trace.initial_weights());
  }

  // False when the run has diverged and is to end here.
  Result<bool> Step(std::int64_t step) {
    SLIMGRAD_RETURN_IF_ERROR(
        source_.Load(step, result_.weights ? result_.weights->ins() : std::span<const In>()));
    if (const auto loss = source_.train_loss()) {
      if (!std::isfinite(*loss)) return Diverged(step);
      result_.train_losses.push_back(*loss);
    }
    const double learning_rate = trace_.schema().learning_rates[static_cast<std::size_t>(step)];
    const std::span<const View> averages = average_.views();
    SLIMGRAD_RETURN_IF_ERROR(exchange_.Step(source_.gradients(), {&averages, 1},
                                            {.learning_rate = learning_rate, .loss_scale = 1}));
    Count();
    if (exchange_.report().skipped) return true;
    if (!result_.weights) return true;
    optimizer_.Step(learning_rate, average_.ins(), result_.weights->outs());
    return WeightsAreFinite() || Diverged(step);
  }

 private:
  bool WeightsAreFinite() const {
    return std::ranges::all_of(result_.weights->const_views(), [&](const ConstView& weights) {
      std::uint64_t count = 0;
      kernels::CountNonFinite(options_.backend, weights, &count);
      return count == 0;
    });
  }

  bool Diverged(std::int64_t step) {
    result_.failure = fmt::format("diverged at step {}", step + 1);
    return false;
  }

  void Count() {
    const StepReport& report = exchange_.report();
    result_.encode_ns += report.encode_ns;
    result_.decode_ns += report.decode_ns;
    if (report.skipped) {
      ++result_.skipped;
      result_.errors.AddSkippedStep();
    } else {
      ++result_.steps;
      result_.traffic += report.traffic;
      result_.payload_bytes += report.payload_bytes;
      result_.saturated += report.saturated;
      AverageExactly(options_.backend, source_.gradients(), exact_);
      result_.errors.AddStep(exact_.ins(), average_.ins());
    }
    CountResidual();
  }

  void CountResidual() {
    bool found = false;
    double sum = 0;
    const std::size_t ranks = source_.gradients().size();
    for (std::size_t r = 0; r < ranks; ++r)
      sum += ResidualNorm(options_.backend, exchange_, r, &found);
    if (found) result_.residual_norms.push_back(sum / static_cast<double>(ranks));
  }

  const Trace& trace_;
  Exchange& exchange_;
  GradientSource& source_;
  const ReplayOptions& options_;
  RunResult& result_;
  TensorSet average_, exact_;
  Optimizer optimizer_;
};

}  // namespace

Result<RunResult> RunLoop(const Trace& trace, const Compressor& compressor, GradientSource& source,
                          std::int64_t steps, const ReplayOptions& options,
                          const std::function<void()>& tick) {
  const auto now = [&] { return options.clock_ns ? options.clock_ns() : 0; };
  const std::uint64_t start = now();
  std::vector<TensorSpec> tensors(trace.tensors().begin(), trace.tensors().end());
  for (TensorSpec& tensor : tensors) tensor.dtype = DType::kF32;  // sources widen
  LockStepGroup group(static_cast<int>(trace.schema().world_size), options.backend);
  SLIMGRAD_ASSIGN_OR_RETURN(
      const auto exchange,
      Exchange::Create(
          group, compressor, std::move(tensors),
          {.seed = options.seed, .backend = options.backend, .clock_ns = options.clock_ns}));
  RunResult result(trace, options.backend);
  result.plans.assign(exchange->plans().begin(), exchange->plans().end());
  Run run(trace, *exchange, source, options, result);
  for (std::int64_t step = 0; step < steps; ++step) {
    SLIMGRAD_ASSIGN_OR_RETURN(const bool goes_on, run.Step(step));
    tick();
    if (!goes_on) break;
  }
  result.wall_ns = now() - start;
  return result;
}

}  // namespace slimgrad::sim
