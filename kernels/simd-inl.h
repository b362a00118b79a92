// Private to the cpu kernels: what their inner loops share. Compiled once for each instruction set
// (Highway's foreach_target), so it has no include guard in the usual sense.
//
// Loops run over groups of 64 elements, whatever the vector's width: the 64 lanes of a LaneSum, one
// line of bits, whole cache lines of every type. What is left at the ends is copied into a padded
// group of its own, so no loop has a second, narrower form.
#if defined(SLIMGRAD_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_SIMD_INL_H_
#undef SLIMGRAD_KERNELS_SIMD_INL_H_
#else
#define SLIMGRAD_KERNELS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu_saturate.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Full vectors of fp32 and of the same number or size of other lanes.
using DF = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<DF>;
using DI = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;

inline constexpr DF kF32;
inline constexpr DU kU32;
inline constexpr DI kI32;

inline constexpr std::size_t kGroup = 64;                      // elements
inline constexpr std::size_t kLanes = hn::MaxLanes(DF());      // fp32 values a vector
inline constexpr std::size_t kGroupVectors = kGroup / kLanes;  // vectors of fp32 a group
static_assert(kGroup % kLanes == 0);

// Calls body(integral_constant<0>) ... body(integral_constant<kCount - 1>): arrays of vectors that
// are indexed so stay in registers.
template <std::size_t kCount, class Body>
HWY_INLINE void Unroll(const Body& body) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) HWY_ATTR
      __attribute__((always_inline)) {
    (body(std::integral_constant<std::size_t, kIndex>()), ...);
  }
  (std::make_index_sequence<kCount>());
}

// A whole vector to memory that is aligned to it. Streaming goes past the caches: twice as fast
// where the output is larger than they are, slower where it is not. FlushStream() after the last.
template <bool kStream, class D>
HWY_INLINE void StoreAligned(hn::Vec<D> v, D d, hn::TFromD<D>* to) {
  if constexpr (kStream) {
    hn::Stream(v, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

HWY_INLINE void FlushStream() { hwy::FlushStream(); }

// Elements before the first 64-byte line of `at` begins, at most n.
template <class T>
HWY_INLINE std::size_t BeforeLine(const T* at, std::size_t n) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(at) % 64;
  return past == 0 ? 0 : std::min(n, (64 - past) / sizeof(T));
}

// A group of which the first `count` elements are from memory, the others zeros.
template <class T>
struct Padded {
  Padded() { std::memset(static_cast<void*>(at), 0, sizeof(at)); }
  Padded(const T* from, std::size_t count) : Padded() { std::memcpy(at, from, count * sizeof(T)); }
  void CopyTo(T* to, std::size_t count) const { std::memcpy(to, at, count * sizeof(T)); }

  HWY_ALIGN_MAX T at[kGroup];
};

HWY_INLINE VU Magnitude(VF x) { return hn::And(hn::BitCast(kU32, x), hn::Set(kU32, 0x7FFFFFFFU)); }

// Whether any lane is at least `least`. Both are in [1, 2^31).
HWY_INLINE bool AnyAtLeast(VU x, std::uint32_t least) {
  const auto below = hn::Set(kI32, static_cast<std::int32_t>(least - 1));
  return !hn::AllFalse(kI32, hn::Gt(hn::BitCast(kI32, x), below));
}

// The larger of magnitudes, which order as signed integers do.
HWY_INLINE VU MaxMagnitude(VU a, VU b) {
  return hn::BitCast(kU32, hn::Max(hn::BitCast(kI32, a), hn::BitCast(kI32, b)));
}

// Seldom, so out of line.
inline HWY_NOINLINE void AddSaturatedOneByOne(const float* x, float* to) {
  for (std::size_t i = 0; i < kGroup; ++i) to[i] = SaturatedSum(to[i], x[i]);
}

// to + x for a group; returns whether all sums are finite.
HWY_INLINE bool SumGroup(const float* HWY_RESTRICT x, const float* HWY_RESTRICT to,
                         VF (&sum)[kGroupVectors]) {
  VU top = hn::Zero(kU32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    sum[v] = hn::LoadU(kF32, to + v * kLanes) + hn::LoadU(kF32, x + v * kLanes);
    top = MaxMagnitude(top, Magnitude(sum[v]));
  });
  return !AnyAtLeast(top, kF32Infinity);
}

// to = to + x for a group, saturating.
HWY_INLINE void AddSaturatedGroup(const float* HWY_RESTRICT x, float* HWY_RESTRICT to) {
  VF sum[kGroupVectors];
  if (HWY_UNLIKELY(!SumGroup(x, to, sum))) return AddSaturatedOneByOne(x, to);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR { hn::StoreU(sum[v], kF32, to + v * kLanes); });
}

// The tree of a LaneSum (kernels/sums.h) within a vector, from half of its lanes on.
template <class D>
HWY_INLINE float TreeSum(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return TreeSum(half, hn::LowerHalf(half, v) + hn::UpperHalf(half, v));
  } else {
    v = v + hn::Shuffle1032(v);
    return hn::GetLane(v + hn::Shuffle2301(v));
  }
}

// That of the first kCount of vectors, which are overwritten; of all of them: of 64 lanes.
template <std::size_t kCount = kGroupVectors>
HWY_INLINE float TreeSum(VF (&lanes)[kGroupVectors]) {
  if constexpr (kCount == 1) {
    return TreeSum(kF32, lanes[0]);
  } else {
    Unroll<kCount / 2>([&](auto v) HWY_ATTR { lanes[v] = lanes[v] + lanes[v + kCount / 2]; });
    return TreeSum<kCount / 2>(lanes);
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
