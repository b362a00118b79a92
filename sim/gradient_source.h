// Where a replay's gradients come from: the recording (open loop) or the model at the replayed
// weights (closed loop). Everything else of a replay is the same for both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/backend.h"
#include "sim/model.h"
#include "sim/tensor_set.h"
#include "sim/trace.h"

namespace slimgrad::sim {

// One thread at a time. Deterministic.
class GradientSource {
 public:
  virtual ~GradientSource() = default;

  // Makes every worker's gradients of step `step` (0 <= step < the trace's steps), at `weights`
  // where they matter.
  virtual Status Load(std::int64_t step, std::span<const In> weights) = 0;

  // Of the step that was loaded last: gradients()[worker][tensor], fp32.
  std::span<const std::span<const ConstView>> gradients() const { return gradients_; }

  // Mean over the workers of the loss of the step's batches, in nats; none: not known.
  virtual std::optional<double> train_loss() const { return std::nullopt; }

 protected:
  std::vector<std::span<const ConstView>> gradients_;
};

// Open loop: what the trace holds, widened to fp32. The trace is borrowed.
std::unique_ptr<GradientSource> RecordedGradients(const Trace& trace, const Backend& backend);

// Closed loop: the model's gradients at the given weights, on the recorded batches. kUnsupported,
// saying what is missing, unless the trace has a graph, data with batches and initial weights. The
// trace is borrowed.
Result<std::unique_ptr<GradientSource>> ModelGradients(const Trace& trace);

// The model of the trace; kUnsupported when the trace has no graph or no data.
Result<std::unique_ptr<Model>> ModelOfTrace(const Trace& trace);

// Evaluates weights on the trace's evaluation set. kUnsupported when there is no model or no such
// set.
class Evaluator {
 public:
  static Result<std::unique_ptr<Evaluator>> Create(const Trace& trace);
  Evaluation Evaluate(std::span<const In> weights);

 private:
  std::unique_ptr<Model> model_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
};

}  // namespace slimgrad::sim
