#include <cmath>

#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/quantize_call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/qsgd_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// The 2-norm where a sum of squares in fp32 has overflowed or may have lost bits.
HWY_NOINLINE float WideNorm(const float* x, std::size_t n) {
  const double sum = LaneSum<double>(0, n, [&](std::size_t i) {
    const auto value = static_cast<double>(x[i]);
    return value * value;
  });
  return SaturateToFloat(std::sqrt(sum));
}

class Norm {
 public:
  Norm() { Clear(); }

  HWY_INLINE void Add(const VF (&x)[kGroupVectors]) {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR { lanes_[v] = lanes_[v] + x[v] * x[v]; });
    if (HWY_UNLIKELY(++groups_ == kSumBlock / kGroup)) EndRun();
  }

  HWY_INLINE float Of(const float* values, std::size_t count) {
    if (groups_ > 0) EndRun();
    if (HWY_LIKELY(total_ >= 0x1p-100F && total_ <= hwy::HighestValue<float>()))
      return std::sqrt(total_);
    return WideNorm(values, count);
  }

 private:
  void Clear() {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR { lanes_[v] = hn::Zero(kF32); });
    groups_ = 0;
  }

  HWY_INLINE void EndRun() {
    total_ = total_ + TreeSum(lanes_);
    Clear();
  }

  VF lanes_[kGroupVectors];
  std::size_t groups_ = 0;
  float total_ = 0;
};

void EncodeLevelsBlocks(const EncodeCall& call, std::size_t first, std::size_t last) {
  Encode<Int8Codes, StochasticLevel, Norm>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(EncodeLevelsBlocks);

}  // namespace

void EncodeLevels(const Backend& backend, const EncodeCall& call) {
  ForItems(backend, call.blocks, call.block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(EncodeLevelsBlocks)(call, first, last);
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
