// The update rule: averaged gradients in, new weights out. docs/trace_format.md, "The update rule",
// is normative: SGD with momentum and Nesterov, Adam (Kingma and Ba, 2015) and AdamW (Loshchilov
// and Hutter, 2019), as PyTorch defines them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"

namespace slimgrad::sim {

// The hyper-parameters that stay the same over a run. Fields of another kind keep their defaults.
struct OptimizerConfig {
  enum class Kind : std::uint8_t { kSgd, kAdam, kAdamW };

  Kind kind = Kind::kSgd;
  double momentum = 0;      // sgd, 0 <= momentum < 1; no momentum state when 0
  double dampening = 0;     // sgd, 0 to 1; the first step has none
  bool nesterov = false;    // sgd; needs momentum > 0 and dampening = 0
  double weight_decay = 0;  // >= 0; sgd and adam add it to the gradient, adamw shrinks the weights
  double beta1 = 0;         // adam and adamw, 0 <= beta < 1
  double beta2 = 0;
  double eps = 0;  // adam and adamw, > 0

  // > 0: the averaged gradient is scaled to at most this 2-norm over all tensors. None: no
  // clipping.
  std::optional<double> clip_global_norm = std::nullopt;
};

// "sgd", "adam", "adamw": the names that trace.json uses.
std::string_view NameOf(OptimizerConfig::Kind kind);

// kInvalidArgument unless every field is finite and in its range, and the fields of other kinds
// have their defaults.
Status Validate(const OptimizerConfig& config);

// One replica's optimizer. Scalars are computed in fp64 and rounded to fp32 where they meet a
// tensor; on tensors every operation is one fp32 rounding, in the order in which the rule is
// written. The clipping norm is an fp64 sum of fixed shape. So equal calls give equal bits, on any
// machine and for any alignment.
//
// Memory: the state is the object's own, one fp32 tensor a weight for momentum, two for Adam,
// zero-filled at construction; Step allocates nothing. Use one object from one thread at a time.
class Optimizer {
 public:
  // CHECKs that Validate(config) and Validate(each tensor) hold: the reader of outside data has
  // asked before.
  Optimizer(const OptimizerConfig& config, std::span<const TensorSpec> tensors);

  // Clips, then updates `weights` in place. One span a tensor, in the order and with the sizes of
  // `tensors` (CHECKed); the two do not overlap. The gradients must be finite: a step that is not
  // is skipped by not calling this, and then does not count as one of the rule's t steps, just as a
  // gradient scaler skips optimizer.step() in PyTorch.
  void Step(double learning_rate, std::span<const In> averaged_gradients,
            std::span<const Out> weights);

  // Calls of Step so far: the t of the rule.
  std::int64_t steps() const { return steps_; }

 private:
  float ClipFactor(std::span<const In> gradients) const;
  void StepSgd(double learning_rate, float clip, std::size_t tensor, In gradient, Out weights);
  void StepAdam(double learning_rate, float clip, std::size_t tensor, In gradient, Out weights);

  OptimizerConfig config_;
  std::vector<std::size_t> sizes_;            // elements of each tensor
  std::vector<std::vector<float>> momentum_;  // sgd's v or adam's m; empty where not needed
  std::vector<std::vector<float>> variance_;  // adam's v
  std::int64_t steps_ = 0;
};

}  // namespace slimgrad::sim
