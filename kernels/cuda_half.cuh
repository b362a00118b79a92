// Private to the cuda kernels: fp32 to and from fp16 and bf16, as bits, by the rules of
// kernels/convert.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace slimgrad::kernels::cuda {

inline constexpr std::uint32_t kF32Magnitude = 0x7FFFFFFF;
inline constexpr std::uint32_t kF32Infinity = 0x7F800000;
inline constexpr std::uint32_t kF32QuietNan = 0x7FC00000;

__device__ inline bool IsNan(float x) {
  return (__float_as_uint(x) & kF32Magnitude) > kF32Infinity;
}
__device__ inline bool IsFinite(float x) {
  return (__float_as_uint(x) & kF32Magnitude) < kF32Infinity;
}

// A NaN of the same sign, quiet and without payload; the hardware's is always positive.
__device__ inline float WithQuietNan(float converted, std::uint32_t sign) {
  return IsNan(converted) ? __uint_as_float(sign | kF32QuietNan) : converted;
}

// A 16-bit format: Round is IEEE 754's, but for NaNs.
struct F16 {
  using Bits = std::uint16_t;
  static constexpr std::uint16_t kInfinity = 0x7C00;
  static constexpr std::uint16_t kQuietNan = 0x7E00;
  static __device__ std::uint16_t Round(float x) { return __half_as_ushort(__float2half_rn(x)); }
  static __device__ float Widen(std::uint16_t code) {
    return WithQuietNan(__half2float(__ushort_as_half(code)), (code & 0x8000U) << 16);
  }
};

struct BF16 {
  using Bits = std::uint16_t;
  static constexpr std::uint16_t kInfinity = 0x7F80;
  static constexpr std::uint16_t kQuietNan = 0x7FC0;
  static __device__ std::uint16_t Round(float x) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  }
  static __device__ float Widen(std::uint16_t code) {
    return WithQuietNan(__uint_as_float(std::uint32_t{code} << 16), (code & 0x8000U) << 16);
  }
};

// x as a code, of 8 or 16 bits; what rounds beyond the largest finite one becomes `largest`, and is
// counted if it was finite.
template <class Format>
__device__ typename Format::Bits Narrow(float x, typename Format::Bits largest,
                                        std::uint32_t& overflowed) {
  using Bits = typename Format::Bits;
  constexpr unsigned kSign = 1U << (8 * sizeof(Bits) - 1);
  const std::uint32_t bits = __float_as_uint(x);
  const auto sign = static_cast<Bits>((bits >> (32 - 8 * sizeof(Bits))) & kSign);
  if (IsNan(x)) return sign | Format::kQuietNan;
  const Bits code = Format::Round(x);
  const bool beyond = (code & (kSign - 1)) == Format::kInfinity && IsFinite(x);
  if (!beyond) return code;
  ++overflowed;
  return sign | largest;
}

}  // namespace slimgrad::kernels::cuda
