// Private to the cpu kernels: vectors of fp32 to and from fp16 and bf16, as bits. Compiled once for
// each instruction set, as simd-inl.h is.
#if defined(SLIMGRAD_KERNELS_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_HALF_INL_H_
#undef SLIMGRAD_KERNELS_HALF_INL_H_
#else
#define SLIMGRAD_KERNELS_HALF_INL_H_
#endif

#include "kernels/cpu_half.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// SSE4 has no instructions for fp16; Highway's stand-in rounds otherwise than we do.
inline constexpr bool kHasF16 = HWY_TARGET != HWY_SSE4;

using DU16 = hn::Repartition<std::uint16_t, DF>;
using VU16 = hn::Vec<DU16>;
inline constexpr DU16 kU16;
inline constexpr std::size_t kLanes16 = 2 * kLanes;

// A 16-bit format: how two vectors of fp32, none of whose lanes overflows or is not finite, become
// one of codes, and how a vector of codes, no NaN, becomes two of fp32.
struct F16 {
  static constexpr std::uint32_t kOverflowsFrom = kF16OverflowsFrom;
  static constexpr std::uint16_t kInfinity = kF16Infinity;
  using Half = hn::Rebind<hwy::float16_t, DF>;
  using Half16 = hn::Rebind<std::uint16_t, DF>;

  static std::uint16_t Code(float x, std::uint32_t largest) { return F16Code(x, largest); }
  static float Value(std::uint16_t code) { return FromF16(code); }

  static HWY_INLINE hn::Vec<Half16> NarrowHalf(VF x) {
    if constexpr (kHasF16) {
      return hn::BitCast(Half16(), hn::DemoteTo(Half(), x));
    } else {
      // As F16Code does.
      const VU magnitude = Magnitude(x);
      const VU odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(kU32, 1));
      const VU rounded = hn::ShiftRight<13>(magnitude + hn::Set(kU32, 0xFFF) + odd);
      const VU normal = rounded - hn::Set(kU32, 112U << 10);
      const VF shifted = hn::BitCast(kF32, magnitude) + hn::Set(kF32, 0.5F);
      const VU subnormal = hn::BitCast(kU32, shifted) - hn::Set(kU32, 0x3F000000);
      const auto small = hn::Lt(hn::BitCast(kI32, magnitude), hn::Set(kI32, 0x38800000));
      const VU code = hn::IfThenElse(hn::RebindMask(kU32, small), subnormal, normal);
      const VU sign = hn::And(hn::ShiftRight<16>(hn::BitCast(kU32, x)), hn::Set(kU32, 0x8000));
      return hn::DemoteTo(Half16(), hn::BitCast(kI32, hn::Or(code, sign)));
    }
  }
  static HWY_INLINE VU16 Narrow(VF low, VF high) {
    return hn::Combine(kU16, NarrowHalf(high), NarrowHalf(low));
  }
  static HWY_INLINE VF WidenHalf(hn::Vec<Half16> code) {
    if constexpr (kHasF16) {
      return hn::PromoteTo(kF32, hn::BitCast(Half(), code));
    } else {
      // As FromF16 does.
      const VU wide = hn::PromoteTo(kU32, code);
      const VU magnitude = hn::And(wide, hn::Set(kU32, 0x7FFF));
      const VF shifted = hn::BitCast(kF32, hn::Or(magnitude, hn::Set(kU32, 0x3F000000)));
      const VU subnormal = hn::BitCast(kU32, shifted - hn::Set(kF32, 0.5F));
      VU bits = hn::ShiftLeft<13>(magnitude) + hn::Set(kU32, 112U << 23);
      const auto below = [&](std::int32_t limit) HWY_ATTR {
        return hn::RebindMask(kU32, hn::Lt(hn::BitCast(kI32, magnitude), hn::Set(kI32, limit)));
      };
      bits = hn::IfThenElse(below(0x0400), subnormal, bits);
      bits = hn::IfThenElse(below(kInfinity), bits, hn::Set(kU32, kF32Infinity));
      return hn::BitCast(kF32, hn::Or(bits, hn::ShiftLeft<16>(wide - magnitude)));
    }
  }
  static HWY_INLINE void Widen(VU16 code, VF& low, VF& high) {
    low = WidenHalf(hn::LowerHalf(Half16(), code));
    high = WidenHalf(hn::UpperHalf(Half16(), code));
  }
};

struct BF16 {
  static constexpr std::uint32_t kOverflowsFrom = kBF16OverflowsFrom;
  static constexpr std::uint16_t kInfinity = kBF16Infinity;

  static std::uint16_t Code(float x, std::uint32_t largest) { return BF16Code(x, largest); }
  static float Value(std::uint16_t code) { return FromBF16(code); }

  // The code is the upper half of the result. No carry reaches the sign, since nothing overflows.
  static HWY_INLINE VU Rounded(VF x) {
    const VU bits = hn::BitCast(kU32, x);
    const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(kU32, 1));
    return bits + (odd + hn::Set(kU32, 0x7FFF));
  }
  static HWY_INLINE VU16 Narrow(VF low, VF high) {
    return hn::ConcatOdd(kU16, hn::BitCast(kU16, Rounded(high)), hn::BitCast(kU16, Rounded(low)));
  }
  static HWY_INLINE void Widen(VU16 code, VF& low, VF& high) {
    const hn::Rebind<std::uint16_t, DF> half;
    const auto widen = [&](auto codes) HWY_ATTR {
      return hn::BitCast(kF32, hn::ShiftLeft<16>(hn::PromoteTo(kU32, codes)));
    };
    low = widen(hn::LowerHalf(half, code));
    high = widen(hn::UpperHalf(half, code));
  }
};

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
