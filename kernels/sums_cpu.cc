#include <algorithm>

#include "core/check.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_ranges.h"
#include "kernels/sums.h"

namespace slimgrad::kernels::cpu {
namespace {

// LaneSum in fp64 with its runs in parallel: up to kRuns sums at a time wait on the stack to be
// added in order.
template <class Member>
double ParallelLaneSum(const Backend& backend, std::size_t n, const Member& member) {
  constexpr std::size_t kRuns = 1024;
  double sums[kRuns];
  double total = 0;
  for (std::size_t first = 0; first < n; first += std::min(kRuns * kSumBlock, n - first)) {
    const std::size_t count = std::min(kRuns * kSumBlock, n - first);
    const std::size_t runs = count / kSumBlock + (count % kSumBlock != 0);
    ForItems(backend, runs, kSumBlock, [&](std::size_t begin, std::size_t end) {
      for (std::size_t run = begin; run < end; ++run) {
        const std::size_t at = run * kSumBlock;
        sums[run] =
            RunSum<double>(first + at, first + at + std::min(kSumBlock, count - at), member);
      }
    });
    for (std::size_t run = 0; run < runs; ++run) total += sums[run];
  }
  return total;
}

}  // namespace

double SumSquares(const Backend& backend, In x) {
  const float* __restrict a = x.data();
  return ParallelLaneSum(backend, x.size(), [a](std::size_t i) {
    return static_cast<double>(a[i]) * static_cast<double>(a[i]);
  });
}

double Dot(const Backend& backend, In x, In y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  const float* __restrict a = x.data();
  const float* __restrict b = y.data();
  return ParallelLaneSum(backend, x.size(), [a, b](std::size_t i) {
    return static_cast<double>(a[i]) * static_cast<double>(b[i]);
  });
}

double SumSquaredDifferences(const Backend& backend, In x, In y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  const float* __restrict a = x.data();
  const float* __restrict b = y.data();
  return ParallelLaneSum(backend, x.size(), [a, b](std::size_t i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    return difference * difference;
  });
}

}  // namespace slimgrad::kernels::cpu
