#include "comm/lock_step_group.h"

#include <numeric>

#include "core/check.h"

namespace slimgrad {

LockStepGroup::LockStepGroup(int size, Backend backend) : backend_(backend) {
  SLIMGRAD_CHECK(size >= 1);
  ranks_.resize(static_cast<std::size_t>(size));
  std::iota(ranks_.begin(), ranks_.end(), 0);
}

Result<std::span<const Bytes>> LockStepGroup::AllGather(std::span<const Bytes> mine,
                                                        TrafficRow& traffic) {
  SLIMGRAD_CHECK(mine.size() == ranks_.size());
  CountAllGather(mine, ranks_, traffic);
  return mine;
}

Status LockStepGroup::AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                                 std::span<std::byte> result, TrafficRow& traffic) {
  SLIMGRAD_CHECK(mine.size() == ranks_.size());
  kernels::Combine(backend_, op, dtype, mine, result);
  const std::size_t element = SizeOf(dtype);
  CountAllCombine(result.size() / element, element, size(), ranks_, traffic);
  return {};
}

}  // namespace slimgrad
