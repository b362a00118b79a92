// Bytes an element, of what must be moved and of what is: F32ToF8, F8ToF32 and F8Decode 5,
// F8DecodeAdd 9, F32ToF8Feedback 13. One pass each. Plain arithmetic: instructions for these
// formats begin with sm_89, and know neither the counts nor kInfinity.
#include "kernels/cuda_convert.cuh"
#include "kernels/float8.h"

namespace slimgrad::kernels::cuda {
namespace {

// The nearest code; of what is beyond the largest number's, infinities too, the one after it.
//
// With |x| in [2^e, 2^(e+1)), or below the least normal number's 2^e, the format's grid is the unit
// in the last place of 2^(e + 23 - kFractionBits): an addition of that rounds, and what it leaves
// in the sum's fraction is how many steps of the grid |x| has.
template <int kFractionBits, std::uint32_t kBias, std::uint32_t kInfinity>
__device__ std::uint8_t RoundTo(float x) {
  constexpr int kDropped = 23 - kFractionBits;
  constexpr std::uint32_t kRebias = (127 - kBias) << 23;
  constexpr std::uint32_t kLeastNormal = kRebias + (1U << 23);
  constexpr std::uint32_t kNext = (kInfinity << kDropped) + kRebias;
  const std::uint32_t bits = __float_as_uint(x);
  const std::uint32_t magnitude = min(bits & kF32Magnitude, kNext);
  const std::uint32_t exponent = max(magnitude & kF32Infinity, kLeastNormal);
  const std::uint32_t anchor = exponent + (std::uint32_t{kDropped} << 23);
  const float sum = __uint_as_float(magnitude) + __uint_as_float(anchor);
  // The steps of a normal number count its leading 1, which is the first step of its exponent.
  const std::uint32_t code =
      __float_as_uint(sum) - anchor + ((exponent - kLeastNormal) >> kDropped);
  return static_cast<std::uint8_t>(code | ((bits >> 24) & 0x80U));
}

__device__ float HalfToFloat(std::uint32_t code) {
  return __half2float(__ushort_as_half(static_cast<std::uint16_t>(code)));
}

struct E4M3 {
  using Bits = std::uint8_t;
  static constexpr std::uint8_t kInfinity = 0x7F;  // a NaN
  static constexpr std::uint8_t kQuietNan = 0x7F;
  static __device__ std::uint8_t Round(float x) { return RoundTo<3, 7, kInfinity>(x); }
  // fp16 has a bit more of exponent, and its bias is larger by 8.
  static __device__ float Widen(std::uint8_t code) {
    const std::uint32_t sign = code & 0x80U, magnitude = code & 0x7FU;
    if (magnitude == kQuietNan) return __uint_as_float(sign << 24 | kF32QuietNan);
    return HalfToFloat(sign << 8 | magnitude << 7) * 256.0F;
  }
};

struct E5M2 {
  using Bits = std::uint8_t;
  static constexpr std::uint8_t kInfinity = 0x7C;
  static constexpr std::uint8_t kQuietNan = 0x7E;
  static __device__ std::uint8_t Round(float x) { return RoundTo<2, 15, kInfinity>(x); }
  // The upper half of an fp16.
  static __device__ float Widen(std::uint8_t code) {
    return WithQuietNan(HalfToFloat(std::uint32_t{code} << 8), (code & 0x80U) << 24);
  }
};

template <Then kThen>
void WidenF8(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
             float weight, Out y) {
  if (format == Float8::kE4M3) return WidenAll<E4M3, kThen>(backend, from.data(), weight, y);
  WidenAll<E5M2, kThen>(backend, from.data(), weight, y);
}

}  // namespace

void F32ToF8(const Backend& backend, Float8 format, In from, std::span<std::uint8_t> to,
             Overflow overflow, std::uint64_t* overflowed) {
  if (format == Float8::kE4M3)
    return NarrowAll<E4M3>(backend, from, to.data(), overflow, overflowed);
  NarrowAll<E5M2>(backend, from, to.data(), overflow, overflowed);
}

void F32ToF8Feedback(const Backend& backend, Float8 format, In x, Out residual,
                     std::span<std::uint8_t> to, Overflow overflow, std::uint64_t* overflowed) {
  if (format == Float8::kE4M3)
    return FeedbackAll<E4M3>(backend, x, residual, to.data(), overflow, overflowed);
  FeedbackAll<E5M2>(backend, x, residual, to.data(), overflow, overflowed);
}

void F8ToF32(const Backend& backend, Float8 format, std::span<const std::uint8_t> from, Out to) {
  WidenF8<Then::kStore>(backend, format, from, 1.0F, to);
}

void F8Decode(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
              float weight, Out y) {
  WidenF8<Then::kScale>(backend, format, from, weight, y);
}

void F8DecodeAdd(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
                 float weight, Out y) {
  WidenF8<Then::kAdd>(backend, format, from, weight, y);
}

}  // namespace slimgrad::kernels::cuda
