#include <cmath>

#include "core/check.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_quantize.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/qsgd.h"

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

void EncodeQsgd(const EncodeCall& call, std::size_t first, std::size_t last) {
  Encode<Int8Codes, StochasticLevel, Norm>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

namespace {

HWY_EXPORT(EncodeQsgd);

void CheckCall(std::size_t n, std::size_t bucket, int levels, std::size_t codes,
               std::size_t norms) {
  SLIMGRAD_CHECK(bucket > 0 && levels >= 1 && levels <= kMaxQsgdLevels && codes == n &&
                 norms == BlockCount(n, bucket));
}

void EncodeAll(const Backend& backend, In x, float* residual, std::size_t bucket, int levels,
               const RandomKey& key, std::span<std::int8_t> codes, Out norms) {
  CheckCall(x.size(), bucket, levels, codes.size(), norms.size());
  const EncodeCall call = {.x = x.data(),
                           .residual = residual,
                           .n = x.size(),
                           .block = bucket,
                           .largest = static_cast<float>(levels),
                           .rounding = Rounding::kStochastic,
                           .key = key,
                           .stream = StreamsCodes(codes.data(), codes.size(), bucket),
                           .codes = reinterpret_cast<std::uint8_t*>(codes.data()),
                           .scales = norms.data()};
  ForItems(backend, norms.size(), bucket, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(EncodeQsgd)(call, first, last);
  });
}

void DecodeAll(const Backend& backend, std::span<const std::int8_t> codes, In norms,
               std::size_t bucket, int levels, float weight, bool add, Out y) {
  CheckCall(y.size(), bucket, levels, codes.size(), norms.size());
  DecodeInt8Blocks(backend, {.codes = reinterpret_cast<const std::uint8_t*>(codes.data()),
                             .scales = norms.data(),
                             .n = y.size(),
                             .block = bucket,
                             .largest = static_cast<float>(levels),
                             .weight = weight,
                             .add = add,
                             .stream = !add && StreamsResults(y, bucket),
                             .y = y.data()});
}

}  // namespace

void QsgdEncode(const Backend& backend, In x, std::size_t bucket, int levels, const RandomKey& key,
                std::span<std::int8_t> codes, Out norms) {
  EncodeAll(backend, x, nullptr, bucket, levels, key, codes, norms);
}

void QsgdEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t bucket, int levels,
                        const RandomKey& key, std::span<std::int8_t> codes, Out norms) {
  SLIMGRAD_CHECK(residual.size() == x.size());
  EncodeAll(backend, x, residual.data(), bucket, levels, key, codes, norms);
}

void QsgdDecode(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                std::size_t bucket, int levels, float weight, Out y) {
  DecodeAll(backend, codes, norms, bucket, levels, weight, false, y);
}

void QsgdDecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                   std::size_t bucket, int levels, float weight, Out y) {
  DecodeAll(backend, codes, norms, bucket, levels, weight, true, y);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
