// Models that the closed loop trains: loss and gradient at given weights, and an evaluation.
// Whoever drives a run (replay, training) sees the interface Model alone; a new kind of model is a
// new factory beside MakeModel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"

namespace slimgrad::sim {

// Examples, borrowed for the call.
struct Batch {
  std::size_t rows = 0;                  // examples, >= 1
  In inputs;                             // fp32 [rows, features], row-major, already scaled
  std::span<const std::int32_t> labels;  // [rows], 0 <= label < classes
};

struct Evaluation {
  double loss = 0;      // nats, mean over the rows
  double accuracy = 0;  // 0 to 1: how often the largest logit (the first of equals) is the label's
};

// A model without weights of its own: they are passed in, one span a tensor in the order of
// tensors(), so that many replicas share one object.
//
// Sizes that do not fit tensors(), features() or classes(), and labels out of range, are the
// caller's mistake (CHECKed). Non-finite weights are not an error: the loss, and what depends on
// them, come out non-finite (a run that diverged). Deterministic: equal calls give equal bits, for
// any alignment of the spans. An object has a workspace, sized by its first calls and bounded
// whatever the number of rows; use it from one thread at a time.
class Model {
 public:
  virtual ~Model() = default;

  // The parameters, in model order.
  virtual std::span<const TensorSpec> tensors() const = 0;
  virtual std::size_t features() const = 0;  // inputs an example
  virtual std::size_t classes() const = 0;   // logits an example

  // Writes the gradient of the mean loss over the batch into `gradients` (overwritten, shaped as
  // the weights, not overlapping them) and returns that loss, in nats.
  virtual double Gradient(std::span<const In> weights, const Batch& batch,
                          std::span<const Out> gradients) = 0;

  virtual Evaluation Evaluate(std::span<const In> weights, const Batch& batch) = 0;

  // Elements of all tensors together.
  std::size_t parameters() const;
};

// One op of docs/trace_format.md, "The model graph". Names are those of tensors.
struct ModelOp {
  enum class Kind : std::uint8_t { kLinear, kRelu, kTanh };

  Kind kind = Kind::kLinear;
  std::string weight;  // linear: tensor [out, in]; empty for the others
  std::string bias;    // linear: tensor [out], or empty for none
};

using ModelGraph = std::vector<ModelOp>;

// "linear", "relu", "tanh": the names that trace.json uses.
std::string_view NameOf(ModelOp::Kind kind);

// The chain of ops as a model: softmax cross-entropy on the last op's output, forward and backward
// in fp32, losses summed in fp64. Sums over more than 256 elements are cut into runs of 256, so
// that no cache size changes the result. kMismatch, naming op, tensor, expected and found, unless
// every tensor is used by exactly one op and all dimensions fit, from `features` to `classes` where
// these are given; kInvalidArgument for a graph that is none (no ops, more than 1000, a relu with a
// weight) or a tensor that is none.
Result<std::unique_ptr<Model>> MakeModel(const ModelGraph& graph,
                                         std::span<const TensorSpec> tensors,
                                         std::optional<std::size_t> features = std::nullopt,
                                         std::optional<std::size_t> classes = std::nullopt);

}  // namespace slimgrad::sim
