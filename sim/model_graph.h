// From the ops of a trace to layers with everything looked up: what MakeModel refuses is refused
// here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "sim/model.h"

namespace slimgrad::sim {

inline constexpr std::size_t kNoTensor = static_cast<std::size_t>(-1);

// One op with everything looked up. Tensors are numbered in model order.
struct Layer {
  ModelOp::Kind kind = ModelOp::Kind::kLinear;
  std::size_t weight = kNoTensor;
  std::size_t bias = kNoTensor;
  std::size_t in = 0;  // width of the input and of the output
  std::size_t out = 0;
};

// At least one layer is linear. Errors and arguments are MakeModel's.
Result<std::vector<Layer>> ReadGraph(const ModelGraph& graph, std::span<const TensorSpec> tensors,
                                     std::optional<std::size_t> features,
                                     std::optional<std::size_t> classes);

}  // namespace slimgrad::sim
