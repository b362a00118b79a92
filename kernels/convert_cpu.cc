#include <cstring>

#include "kernels/convert.h"
#include "kernels/cpu_convert.h"
#include "kernels/cpu_half.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/convert-inl.h"
#include "kernels/half-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Element by element: for groups with a value that overflows or is not finite.
template <class Format>
HWY_NOINLINE std::uint32_t NarrowOneByOne(const float* HWY_RESTRICT in, std::uint32_t largest,
                                          std::uint16_t* HWY_RESTRICT out) {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    out[i] = Format::Code(in[i], largest);
    count += Overflows(in[i], Format::kOverflowsFrom);
  }
  return count;
}

// The code of a group; returns how many finite values overflowed.
template <class Format, bool kStream>
HWY_INLINE std::uint32_t NarrowGroup(const float* HWY_RESTRICT in, std::uint32_t largest,
                                     std::uint16_t* HWY_RESTRICT out) {
  VF x[kGroupVectors];
  VU top = hn::Zero(kU32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    x[v] = hn::LoadU(kF32, in + v * kLanes);
    top = MaxMagnitude(top, Magnitude(x[v]));
  });
  if (HWY_UNLIKELY(AnyAtLeast(top, Format::kOverflowsFrom)))
    return NarrowOneByOne<Format>(in, largest, out);
  Unroll<kGroupVectors / 2>([&](auto v) HWY_ATTR {
    StoreAligned<kStream>(Format::Narrow(x[2 * v], x[2 * v + 1]), kU16, out + v * kLanes16);
  });
  return 0;
}

// residual = residual + x, then what its code leaves over.
template <class Format>
HWY_INLINE std::uint32_t FeedbackGroup(const float* HWY_RESTRICT in, std::uint32_t largest,
                                       float* HWY_RESTRICT residual,
                                       std::uint16_t* HWY_RESTRICT out) {
  VF x[kGroupVectors];
  VU top = hn::Zero(kU32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    x[v] = hn::LoadU(kF32, residual + v * kLanes) + hn::LoadU(kF32, in + v * kLanes);
    top = MaxMagnitude(top, Magnitude(x[v]));
  });
  if (HWY_UNLIKELY(AnyAtLeast(top, Format::kOverflowsFrom))) {
    for (std::size_t i = 0; i < kGroup; ++i) residual[i] = SaturatedSum(residual[i], in[i]);
    const std::uint32_t overflowed = NarrowOneByOne<Format>(residual, largest, out);
    for (std::size_t i = 0; i < kGroup; ++i) residual[i] = residual[i] - Format::Value(out[i]);
    return overflowed;
  }
  Unroll<kGroupVectors / 2>([&](auto v) HWY_ATTR {
    const VU16 code = Format::Narrow(x[2 * v], x[2 * v + 1]);
    VF low, high;
    Format::Widen(code, low, high);
    hn::StoreU(x[2 * v] - low, kF32, residual + 2 * v * kLanes);
    hn::StoreU(x[2 * v + 1] - high, kF32, residual + (2 * v + 1) * kLanes);
    hn::StoreU(code, kU16, out + v * kLanes16);
  });
  return 0;
}

template <class Format, Then kThen>
HWY_NOINLINE void WidenOneByOne(const std::uint16_t* in, float weight, float* y) {
  for (std::size_t i = 0; i < kGroup; ++i) {
    const float value = Format::Value(in[i]);
    if constexpr (kThen == Then::kStore) {
      y[i] = value;
    } else {
      y[i] = (kThen == Then::kAdd ? y[i] : 0.0F) + weight * value;
    }
  }
}

template <class Format, Then kThen, bool kStream>
HWY_INLINE void WidenGroup(const std::uint16_t* HWY_RESTRICT in, float weight,
                           float* HWY_RESTRICT y) {
  VU16 codes[kGroupVectors / 2];
  VU16 top = hn::Zero(kU16);
  Unroll<kGroupVectors / 2>([&](auto v) HWY_ATTR {
    codes[v] = hn::LoadU(kU16, in + v * kLanes16);
    top = hn::Max(top, hn::And(codes[v], hn::Set(kU16, 0x7FFF)));
  });
  const hn::RebindToSigned<DU16> i16;
  const auto nan = hn::Gt(hn::BitCast(i16, top), hn::Set(i16, Format::kInfinity));
  if (HWY_UNLIKELY(!hn::AllFalse(i16, nan))) return WidenOneByOne<Format, kThen>(in, weight, y);
  Unroll<kGroupVectors / 2>([&](auto v) HWY_ATTR {
    VF low, high;
    Format::Widen(codes[v], low, high);
    StoreWide<kThen, kStream>(low, weight, y + 2 * v * kLanes);
    StoreWide<kThen, kStream>(high, weight, y + (2 * v + 1) * kLanes);
  });
}

template <class Format>
struct HalfGroups {
  using Bits = std::uint16_t;

  template <bool kStream>
  static HWY_INLINE std::uint32_t Narrow(const float* in, std::uint32_t largest, Bits* out) {
    return NarrowGroup<Format, kStream>(in, largest, out);
  }
  static HWY_INLINE std::uint32_t Feedback(const float* in, std::uint32_t largest, float* residual,
                                           Bits* out) {
    return FeedbackGroup<Format>(in, largest, residual, out);
  }
  template <Then kThen, bool kStream>
  static HWY_INLINE void Widen(const Bits* in, float weight, float* y) {
    WidenGroup<Format, kThen, kStream>(in, weight, y);
  }
};

std::uint64_t NarrowF16(const float* in, std::size_t n, std::uint32_t largest, bool stream,
                        std::uint16_t* out) {
  return NarrowRange<HalfGroups<F16>>(in, n, largest, stream, out);
}
std::uint64_t NarrowBF16(const float* in, std::size_t n, std::uint32_t largest, bool stream,
                         std::uint16_t* out) {
  return NarrowRange<HalfGroups<BF16>>(in, n, largest, stream, out);
}
std::uint64_t FeedbackF16(const float* in, std::size_t n, std::uint32_t largest, float* residual,
                          std::uint16_t* out) {
  return FeedbackRange<HalfGroups<F16>>(in, n, largest, residual, out);
}
std::uint64_t FeedbackBF16(const float* in, std::size_t n, std::uint32_t largest, float* residual,
                           std::uint16_t* out) {
  return FeedbackRange<HalfGroups<BF16>>(in, n, largest, residual, out);
}
void CopyRange(const float* HWY_RESTRICT in, std::size_t n, bool stream, float* HWY_RESTRICT to) {
  const std::size_t head = stream ? BeforeLine(to, n) : n;
  std::memcpy(to, in, head * sizeof(float));
  std::size_t i = head;
  for (; n - i >= kGroup; i += kGroup)
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      StoreAligned<true>(hn::LoadU(kF32, in + i + v * kLanes), kF32, to + i + v * kLanes);
    });
  std::memcpy(to + i, in + i, (n - i) * sizeof(float));
  if (stream) FlushStream();
}

void WidenF16(const std::uint16_t* in, std::size_t n, Then then, float weight, bool stream,
              float* y) {
  WidenRange<HalfGroups<F16>>(in, n, then, weight, stream, y);
}
void WidenBF16(const std::uint16_t* in, std::size_t n, Then then, float weight, bool stream,
               float* y) {
  WidenRange<HalfGroups<BF16>>(in, n, then, weight, stream, y);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(NarrowF16);
HWY_EXPORT(NarrowBF16);
HWY_EXPORT(FeedbackF16);
HWY_EXPORT(FeedbackBF16);
HWY_EXPORT(CopyRange);
HWY_EXPORT(WidenF16);
HWY_EXPORT(WidenBF16);

template <class Bits>
std::uint16_t* Codes(std::span<Bits> codes) {
  return reinterpret_cast<std::uint16_t*>(codes.data());
}
template <class Bits>
const std::uint16_t* Codes(std::span<const Bits> codes) {
  return reinterpret_cast<const std::uint16_t*>(codes.data());
}

}  // namespace

void F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow,
              std::uint64_t* overflowed) {
  NarrowAll(backend, from, Codes(to), LargestCode(kF16Infinity, overflow),
            HWY_DYNAMIC_DISPATCH(NarrowF16), overflowed);
}

void F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to, Overflow overflow,
               std::uint64_t* overflowed) {
  NarrowAll(backend, from, Codes(to), LargestCode(kBF16Infinity, overflow),
            HWY_DYNAMIC_DISPATCH(NarrowBF16), overflowed);
}

void F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                      Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll(backend, x, residual, Codes(to), LargestCode(kF16Infinity, overflow),
              HWY_DYNAMIC_DISPATCH(FeedbackF16), overflowed);
}

void F32ToBF16Feedback(const Backend& backend, In x, Out residual, std::span<bfloat16_bits> to,
                       Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll(backend, x, residual, Codes(to), LargestCode(kBF16Infinity, overflow),
              HWY_DYNAMIC_DISPATCH(FeedbackBF16), overflowed);
}

void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to) {
  WidenAll(backend, Codes(from), Then::kStore, 1.0F, to, HWY_DYNAMIC_DISPATCH(WidenF16));
}

void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to) {
  WidenAll(backend, Codes(from), Then::kStore, 1.0F, to, HWY_DYNAMIC_DISPATCH(WidenBF16));
}

void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  WidenAll(backend, Codes(from), Then::kAdd, weight, y, HWY_DYNAMIC_DISPATCH(WidenF16));
}

void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y) {
  WidenAll(backend, Codes(from), Then::kAdd, weight, y, HWY_DYNAMIC_DISPATCH(WidenBF16));
}

void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  WidenAll(backend, Codes(from), Then::kScale, weight, y, HWY_DYNAMIC_DISPATCH(WidenF16));
}

void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y) {
  WidenAll(backend, Codes(from), Then::kScale, weight, y, HWY_DYNAMIC_DISPATCH(WidenBF16));
}

void Copy(const Backend& backend, In from, Out to) {
  const bool stream = OutgrowsCaches(to.size_bytes());
  ForElements(backend, from.size(), [&](std::size_t begin, std::size_t end) {
    HWY_DYNAMIC_DISPATCH(CopyRange)(from.data() + begin, end - begin, stream, to.data() + begin);
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
