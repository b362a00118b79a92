// What independent ranks tell each other of the call that they are in, to find out that they differ
// before any of them waits for bytes that do not come. For implementations of groups.
#pragma once

#include <cstdint>
#include <optional>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/combine.h"

namespace slimgrad {

struct Call {
  std::optional<kernels::CombineOp> op = {};  // nothing: AllGather
  DType dtype = DType::kU8;
  std::uint64_t bytes = 0;  // of the rank's message
};

// Whether `rank` is in the same call as rank 0; kMismatch names it. A rank that compares all others
// with rank 0, in order, comes to the same verdict as every other rank.
Status CheckSameCall(const Call& first, const Call& other, int rank);

}  // namespace slimgrad
