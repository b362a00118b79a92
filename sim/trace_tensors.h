// Checks of one tensor file against what a trace says of it, shared by the files that hold them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "core/tensor.h"

namespace slimgrad::sim {

// "F32 [2, 3]"
std::string TypeText(DType dtype, std::span<const std::int64_t> shape);

// The file's tensors in the order of `specs`: exactly these, all of `dtype`. kMismatch names the
// tensor.
Result<std::vector<ConstView>> MatchTensors(const Safetensors& file,
                                            std::span<const TensorSpec> specs, DType dtype);

// kCorrupt, naming the first element, unless all are finite (and not negative, if asked).
Status CheckFinite(std::string_view tensor, In values, bool not_negative = false);

// Element i of a U8, U16, I32 or I64 tensor.
std::int64_t IntegerAt(const ConstView& view, std::size_t i);

// kCorrupt, naming the first element, unless 0 <= value < end for all of such a tensor.
Status CheckBelow(std::string_view tensor, const ConstView& values, std::int64_t end);

}  // namespace slimgrad::sim
