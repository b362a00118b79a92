#include <algorithm>

#include "kernels/blocks.h"
#include "kernels/cpu_ranges.h"
#include "kernels/sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sums_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// What is summed, of one element of each span.
struct Product {
  static HWY_INLINE double Of(float a, float b) {
    return static_cast<double>(a) * static_cast<double>(b);
  }
};
struct SquaredDifference {
  static HWY_INLINE double Of(float a, float b) {
    const double difference = static_cast<double>(a) - static_cast<double>(b);
    return difference * difference;
  }
};

// The LaneSum of up to kSumBlock elements. Never -0, since lanes start at +0.
template <class Member>
HWY_INLINE double RunSum(const float* a, const float* b, std::size_t n) {
  HWY_ALIGN_MAX double lanes[kSumLanes] = {};
  std::size_t i = 0;
  for (; n - i >= kSumLanes; i += kSumLanes)
    for (std::size_t l = 0; l < kSumLanes; ++l) lanes[l] += Member::Of(a[i + l], b[i + l]);
  for (std::size_t l = 0; i + l < n; ++l) lanes[l] += Member::Of(a[i + l], b[i + l]);
  for (std::size_t width = kSumLanes / 2; width > 0; width /= 2)
    for (std::size_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  return lanes[0];
}

double RunOfProducts(const float* a, const float* b, std::size_t n) {
  return RunSum<Product>(a, b, n);
}

double RunOfSquares(const float* a, const float*, std::size_t n) {
  return RunSum<Product>(a, a, n);
}

double RunOfSquaredDifferences(const float* a, const float* b, std::size_t n) {
  return RunSum<SquaredDifference>(a, b, n);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(RunOfProducts);
HWY_EXPORT(RunOfSquares);
HWY_EXPORT(RunOfSquaredDifferences);

using RunSumFunction = double (*)(const float* a, const float* b, std::size_t n);

// The LaneSum of all, its runs in parallel: up to kRuns sums at a time wait on the stack to be
// added in order.
double ParallelLaneSum(const Backend& backend, In x, In y, RunSumFunction run_sum) {
  constexpr std::size_t kRuns = 1024;
  double sums[kRuns];
  double total = 0;
  for (std::size_t first = 0; first < x.size(); first += kRuns * kSumBlock) {
    const std::size_t count = std::min(kRuns * kSumBlock, x.size() - first);
    const std::size_t runs = BlockCount(count, kSumBlock);
    ForItems(backend, runs, kSumBlock, [&](std::size_t begin, std::size_t end) {
      for (std::size_t run = begin; run < end; ++run) {
        const std::size_t at = run * kSumBlock;
        sums[run] =
            run_sum(x.data() + first + at, y.data() + first + at, std::min(kSumBlock, count - at));
      }
    });
    for (std::size_t run = 0; run < runs; ++run) total += sums[run];
  }
  return total;
}

}  // namespace

double SumSquares(const Backend& backend, In x) {
  return ParallelLaneSum(backend, x, x, HWY_DYNAMIC_DISPATCH(RunOfSquares));
}

double Dot(const Backend& backend, In x, In y) {
  return ParallelLaneSum(backend, x, y, HWY_DYNAMIC_DISPATCH(RunOfProducts));
}

double SumSquaredDifferences(const Backend& backend, In x, In y) {
  return ParallelLaneSum(backend, x, y, HWY_DYNAMIC_DISPATCH(RunOfSquaredDifferences));
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
