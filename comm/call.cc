#include "comm/call.h"

#include <fmt/format.h>

namespace slimgrad {

Status CheckSameCall(const Call& first, const Call& other, int rank) {
  if (other.op != first.op || other.dtype != first.dtype)
    return Mismatch(fmt::format("rank {} is in another call than rank 0", rank));
  if (first.op && other.bytes != first.bytes)
    return Mismatch(fmt::format("rank {}: bytes to combine: expected {} as on rank 0, found {}",
                                rank, first.bytes, other.bytes));
  return {};
}

}  // namespace slimgrad
