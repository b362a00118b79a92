#include "kernels/cpu_convert.h"
#include "kernels/cpu_half.h"
#include "kernels/float8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/float8_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/bytes-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/half-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using DI16 = hn::RebindToSigned<DU16>;
using VI16 = hn::Vec<DI16>;

// A format: its bits as an fp32 has them, and how codes become fp16, of which fp32 is the value
// times kUnit.
struct E4M3 {
  static constexpr int kFractionBits = 3;
  static constexpr std::uint32_t kBias = 7;
  static constexpr std::uint32_t kOverflowsFrom = 0x43E80001;  // beyond 464
  static constexpr std::uint8_t kInfinity = kE4M3Infinity;     // a NaN
  static constexpr std::uint8_t kNan = 0x7F;
  static constexpr bool kHasInfinity = false;
  static constexpr std::uint8_t kLeastSpecial = kNan;
  static constexpr float kUnit = 256, kStep = 0x1p-9F;

  // fp16 has one bit more of exponent. The sign fills both bits above; the upper one remains.
  static HWY_INLINE VU16 Half(VI16 code) {
    return hn::And(hn::BitCast(kU16, hn::ShiftLeft<7>(code)), hn::Set(kU16, 0xBFFF));
  }
};

struct E5M2 {
  static constexpr int kFractionBits = 2;
  static constexpr std::uint32_t kBias = 15;
  static constexpr std::uint32_t kOverflowsFrom = 0x47700000;  // 61440
  static constexpr std::uint8_t kInfinity = kE5M2Infinity;
  static constexpr std::uint8_t kNan = 0x7E;
  static constexpr bool kHasInfinity = true;
  static constexpr std::uint8_t kLeastSpecial = kHasF16 ? kInfinity + 1 : kInfinity;
  static constexpr float kUnit = 1, kStep = 0x1p-16F;

  static HWY_INLINE VU16 Half(VI16 code) { return hn::BitCast(kU16, hn::ShiftLeft<8>(code)); }
};

// Fraction bits that fp32 has more, and what the code of a number in these, as an fp32, lacks in
// the exponent.
template <class Format>
inline constexpr int kDropped = 23 - Format::kFractionBits;
template <class Format>
inline constexpr std::uint32_t kRebias = (127 - Format::kBias) << 23;

HWY_INLINE VU SignOf(VF x) { return hn::And(hn::BitCast(kU32, x), hn::Set(kU32, 0x80000000U)); }

struct RoundedLanes {
  VU code;  // in the lowest byte, without the sign; the others hold nothing of use
  VF magnitude;
};

// Rounds magnitudes that do not overflow. With m in [2^e, 2^(e+1)), or below the least normal
// number's 2^e, the format's grid is the unit in the last place of 2^(e + kDropped): an addition of
// that rounds, and what it leaves in the sum's fraction is how many steps of the grid m has. The
// steps of a normal number count its leading 1, which is the first step of its exponent; so code =
// steps + the exponent above the least, in steps. What the least stands for in the lowest byte is
// taken off with the addition; it is even, so that ties stay ties to even.
template <class Format>
HWY_INLINE RoundedLanes Round(VU magnitude) {
  constexpr std::uint32_t kDrop = kDropped<Format>;
  constexpr std::uint32_t kLeastNormal = kRebias<Format> + (1U << 23);
  constexpr std::uint32_t kLeast = 0x100 - (kLeastNormal >> kDrop) % 0x100;
  static_assert(kLeast % 2 == 0);
  const VU exponent =
      hn::BitCast(kU32, hn::Max(hn::BitCast(kI32, hn::And(magnitude, hn::Set(kU32, kF32Infinity))),
                                hn::Set(kI32, static_cast<std::int32_t>(kLeastNormal))));
  const VF anchor = hn::BitCast(kF32, exponent + hn::Set(kU32, (kDrop << 23) + kLeast));
  const VF sum = hn::BitCast(kF32, magnitude) + anchor;
  return {hn::BitCast(kU32, sum) + hn::ShiftRight<kDrop>(exponent), sum - anchor};
}

HWY_INLINE VU WithSign(VU code, VF x) {
  return hn::OrAnd(code, hn::ShiftRight<24>(hn::BitCast(kU32, x)), hn::Set(kU32, 0x80));
}

// Codes of any values. `largest` is the code of what overflows.
template <class Format>
HWY_INLINE VU AnyCode(VF x, std::uint32_t largest) {
  const VU magnitude = Magnitude(x);
  const auto order = hn::BitCast(kI32, magnitude);
  // As if the code after the largest number's were a number too.
  const std::uint32_t most = (largest << kDropped<Format>)+kRebias<Format>;
  const auto clamped = hn::Min(order, hn::Set(kI32, static_cast<std::int32_t>(most)));
  VU code = Round<Format>(hn::BitCast(kU32, clamped)).code;
  const auto infinity = hn::Set(kI32, static_cast<std::int32_t>(kF32Infinity));
  code = hn::IfThenElse(hn::RebindMask(kU32, hn::Eq(order, infinity)),
                        hn::Set(kU32, Format::kInfinity), code);
  code = hn::IfThenElse(hn::RebindMask(kU32, hn::Gt(order, infinity)), hn::Set(kU32, Format::kNan),
                        code);
  return WithSign(code, x);
}

// For groups with a value that overflows or is not finite; returns how many finite ones overflowed.
template <class Format>
HWY_NOINLINE std::uint32_t NarrowAny(const float* HWY_RESTRICT in, std::uint32_t largest,
                                     std::uint8_t* HWY_RESTRICT out) {
  Unroll<kQuads>([&](auto quad) HWY_ATTR {
    VU code[4];
    Unroll<4>([&](auto k) HWY_ATTR {
      code[k] = AnyCode<Format>(hn::LoadU(kF32, in + (4 * quad + k) * kLanes), largest);
    });
    hn::StoreU(LowestBytes(code), kU8, out + quad * kLanes8);
  });
  std::uint32_t overflowed = 0;
  for (std::size_t i = 0; i < kGroup; ++i) overflowed += Overflows(in[i], Format::kOverflowsFrom);
  return overflowed;
}

// Without instructions for fp16: as if all codes were numbers.
template <class Format>
HWY_INLINE VF WidenWords(hn::Vec<DI> code) {
  constexpr std::int32_t kLeastNormal = 1 << Format::kFractionBits;
  const auto magnitude = hn::And(code, hn::Set(kI32, 0x7F));
  const VF subnormal = hn::ConvertTo(kF32, magnitude) * hn::Set(kF32, Format::kStep);
  const VU normal = hn::ShiftLeft<kDropped<Format>>(hn::BitCast(kU32, magnitude)) +
                    hn::Set(kU32, kRebias<Format>);
  const auto small = hn::RebindMask(kF32, hn::Lt(magnitude, hn::Set(kI32, kLeastNormal)));
  const VF value = hn::IfThenElse(small, subnormal, hn::BitCast(kF32, normal));
  return hn::CopySignToAbs(value, hn::BitCast(kF32, code));
}

// Four vectors of fp32 from one of codes below kLeastSpecial.
template <class Format>
HWY_INLINE void WidenCodes(VU8 codes, VF (&to)[4]) {
  const hn::Half<hn::RebindToSigned<DU8>> half;
  const auto bytes = hn::BitCast(hn::RebindToSigned<DU8>(), codes);
  const VI16 low = hn::PromoteTo(DI16(), hn::LowerHalf(half, bytes));
  const VI16 high = hn::PromoteTo(DI16(), hn::UpperHalf(half, bytes));
  if constexpr (kHasF16) {
    F16::Widen(Format::Half(low), to[0], to[1]);
    F16::Widen(Format::Half(high), to[2], to[3]);
    if constexpr (Format::kUnit != 1)
      Unroll<4>([&](auto k) HWY_ATTR { to[k] = to[k] * hn::Set(kF32, Format::kUnit); });
  } else {
    const hn::Half<DI16> half16;
    to[0] = WidenWords<Format>(hn::PromoteTo(kI32, hn::LowerHalf(half16, low)));
    to[1] = WidenWords<Format>(hn::PromoteTo(kI32, hn::UpperHalf(half16, low)));
    to[2] = WidenWords<Format>(hn::PromoteTo(kI32, hn::LowerHalf(half16, high)));
    to[3] = WidenWords<Format>(hn::PromoteTo(kI32, hn::UpperHalf(half16, high)));
  }
}

// What WidenCodes made of any code; of an infinity's and a NaN's, it may have made a number that is
// larger than all others.
template <class Format>
HWY_INLINE VF WithSpecial(VF value) {
  const auto magnitude = hn::BitCast(kI32, Magnitude(value));
  const auto is = [&](std::uint32_t above) HWY_ATTR {
    return hn::RebindMask(kF32, hn::Gt(magnitude, hn::Set(kI32, static_cast<std::int32_t>(above))));
  };
  const auto with_sign = [&](std::uint32_t bits) HWY_ATTR {
    return hn::BitCast(kF32, hn::Or(SignOf(value), hn::Set(kU32, bits)));
  };
  constexpr std::uint32_t kLargest = ((Format::kInfinity - 1U) << kDropped<Format>)+kRebias<Format>;
  if constexpr (!Format::kHasInfinity)
    return hn::IfThenElse(is(kLargest), with_sign(kF32QuietNan), value);
  const VF infinity = hn::IfThenElse(is(kLargest), with_sign(kF32Infinity), value);
  constexpr std::uint32_t kNext = kLargest + (1U << kDropped<Format>);
  return hn::IfThenElse(is(kHasF16 ? kF32Infinity : kNext), with_sign(kF32QuietNan), infinity);
}

template <class Format, bool kSpecial, Then kThen, bool kStream>
HWY_INLINE void WidenGroup(const std::uint8_t* HWY_RESTRICT in, float weight,
                           float* HWY_RESTRICT y) {
  Unroll<kQuads>([&](auto quad) HWY_ATTR {
    VF value[4];
    WidenCodes<Format>(hn::LoadU(kU8, in + quad * kLanes8), value);
    Unroll<4>([&](auto k) HWY_ATTR {
      if constexpr (kSpecial) value[k] = WithSpecial<Format>(value[k]);
      StoreWide<kThen, kStream>(value[k], weight, y + (4 * quad + k) * kLanes);
    });
  });
}

template <class Format, Then kThen>
HWY_NOINLINE void WidenAny(const std::uint8_t* in, float weight, float* y) {
  WidenGroup<Format, true, kThen, false>(in, weight, y);
}

template <class Format>
HWY_INLINE bool AnySpecial(const std::uint8_t* in) {
  const hn::RebindToSigned<DU8> i8;
  VU8 top = hn::Zero(kU8);
  Unroll<kQuads>([&](auto quad) HWY_ATTR {
    top = hn::Max(top, hn::And(hn::LoadU(kU8, in + quad * kLanes8), hn::Set(kU8, 0x7F)));
  });
  return !hn::AllFalse(i8, hn::Gt(hn::BitCast(i8, top), hn::Set(i8, Format::kLeastSpecial - 1)));
}

template <class Format>
struct Float8Groups {
  using Bits = std::uint8_t;

  template <bool kStream>
  static HWY_INLINE std::uint32_t Narrow(const float* HWY_RESTRICT in, std::uint32_t largest,
                                         Bits* HWY_RESTRICT out) {
    VF x[kGroupVectors];
    VU top = hn::Zero(kU32);
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      x[v] = hn::LoadU(kF32, in + v * kLanes);
      top = MaxMagnitude(top, Magnitude(x[v]));
    });
    if (HWY_UNLIKELY(AnyAtLeast(top, Format::kOverflowsFrom)))
      return NarrowAny<Format>(in, largest, out);
    Unroll<kQuads>([&](auto quad) HWY_ATTR {
      VU code[4];
      Unroll<4>([&](auto k) HWY_ATTR {
        const VF value = x[4 * quad + k];
        code[k] = WithSign(Round<Format>(Magnitude(value)).code, value);
      });
      StoreAligned<kStream>(LowestBytes(code), kU8, out + quad * kLanes8);
    });
    return 0;
  }

  static HWY_INLINE std::uint32_t Feedback(const float* HWY_RESTRICT in, std::uint32_t largest,
                                           float* HWY_RESTRICT residual, Bits* HWY_RESTRICT out) {
    VF x[kGroupVectors];
    VU top = hn::Zero(kU32);
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      x[v] = hn::LoadU(kF32, residual + v * kLanes) + hn::LoadU(kF32, in + v * kLanes);
      top = MaxMagnitude(top, Magnitude(x[v]));
    });
    if (HWY_UNLIKELY(AnyAtLeast(top, Format::kOverflowsFrom)))
      return FeedbackAny(in, largest, residual, out);
    Unroll<kQuads>([&](auto quad) HWY_ATTR {
      VU code[4];
      Unroll<4>([&](auto k) HWY_ATTR {
        const VF p = x[4 * quad + k];
        const RoundedLanes rounded = Round<Format>(Magnitude(p));
        code[k] = WithSign(rounded.code, p);
        const VF value = hn::CopySignToAbs(rounded.magnitude, p);
        hn::StoreU(p - value, kF32, residual + (4 * quad + k) * kLanes);
      });
      hn::StoreU(LowestBytes(code), kU8, out + quad * kLanes8);
    });
    return 0;
  }

  static HWY_NOINLINE std::uint32_t FeedbackAny(const float* HWY_RESTRICT in, std::uint32_t largest,
                                                float* HWY_RESTRICT residual,
                                                Bits* HWY_RESTRICT out) {
    AddSaturatedOneByOne(in, residual);
    const std::uint32_t overflowed = NarrowAny<Format>(residual, largest, out);
    WidenAny<Format, Then::kAdd>(out, -1.0F, residual);
    return overflowed;
  }

  template <Then kThen, bool kStream>
  static HWY_INLINE void Widen(const Bits* HWY_RESTRICT in, float weight, float* HWY_RESTRICT y) {
    if (HWY_UNLIKELY(AnySpecial<Format>(in))) return WidenAny<Format, kThen>(in, weight, y);
    WidenGroup<Format, false, kThen, kStream>(in, weight, y);
  }
};

std::uint64_t NarrowE4M3(const float* in, std::size_t n, std::uint32_t largest, bool stream,
                         std::uint8_t* out) {
  return NarrowRange<Float8Groups<E4M3>>(in, n, largest, stream, out);
}
std::uint64_t NarrowE5M2(const float* in, std::size_t n, std::uint32_t largest, bool stream,
                         std::uint8_t* out) {
  return NarrowRange<Float8Groups<E5M2>>(in, n, largest, stream, out);
}
std::uint64_t FeedbackE4M3(const float* in, std::size_t n, std::uint32_t largest, float* residual,
                           std::uint8_t* out) {
  return FeedbackRange<Float8Groups<E4M3>>(in, n, largest, residual, out);
}
std::uint64_t FeedbackE5M2(const float* in, std::size_t n, std::uint32_t largest, float* residual,
                           std::uint8_t* out) {
  return FeedbackRange<Float8Groups<E5M2>>(in, n, largest, residual, out);
}
void WidenE4M3(const std::uint8_t* in, std::size_t n, Then then, float weight, bool stream,
               float* y) {
  WidenRange<Float8Groups<E4M3>>(in, n, then, weight, stream, y);
}
void WidenE5M2(const std::uint8_t* in, std::size_t n, Then then, float weight, bool stream,
               float* y) {
  WidenRange<Float8Groups<E5M2>>(in, n, then, weight, stream, y);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(NarrowE4M3);
HWY_EXPORT(NarrowE5M2);
HWY_EXPORT(FeedbackE4M3);
HWY_EXPORT(FeedbackE5M2);
HWY_EXPORT(WidenE4M3);
HWY_EXPORT(WidenE5M2);

bool IsE4M3(Float8 format) { return format == Float8::kE4M3; }

// The code of what overflows.
std::uint32_t CodeBeyond(Float8 format, Overflow overflow) {
  return LargestCode(IsE4M3(format) ? kE4M3Infinity : kE5M2Infinity, overflow);
}

void Widen(const Backend& backend, Float8 format, std::span<const std::uint8_t> from, Then then,
           float weight, Out y) {
  WidenAll<std::uint8_t>(
      backend, from.data(), then, weight, y,
      IsE4M3(format) ? HWY_DYNAMIC_DISPATCH(WidenE4M3) : HWY_DYNAMIC_DISPATCH(WidenE5M2));
}

}  // namespace

void F32ToF8(const Backend& backend, Float8 format, In from, std::span<std::uint8_t> to,
             Overflow overflow, std::uint64_t* overflowed) {
  NarrowAll<std::uint8_t>(
      backend, from, to.data(), CodeBeyond(format, overflow),
      IsE4M3(format) ? HWY_DYNAMIC_DISPATCH(NarrowE4M3) : HWY_DYNAMIC_DISPATCH(NarrowE5M2),
      overflowed);
}

void F32ToF8Feedback(const Backend& backend, Float8 format, In x, Out residual,
                     std::span<std::uint8_t> to, Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll<std::uint8_t>(
      backend, x, residual, to.data(), CodeBeyond(format, overflow),
      IsE4M3(format) ? HWY_DYNAMIC_DISPATCH(FeedbackE4M3) : HWY_DYNAMIC_DISPATCH(FeedbackE5M2),
      overflowed);
}

void F8ToF32(const Backend& backend, Float8 format, std::span<const std::uint8_t> from, Out to) {
  Widen(backend, format, from, Then::kStore, 1.0F, to);
}

void F8Decode(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
              float weight, Out y) {
  Widen(backend, format, from, Then::kScale, weight, y);
}

void F8DecodeAdd(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
                 float weight, Out y) {
  Widen(backend, format, from, Then::kAdd, weight, y);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
