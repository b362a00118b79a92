// half, bfloat16 and the two fp8 formats, to and from double. Every conversion rounds once.
#pragma once

#include <algorithm>

#include "tools/ptxrun/machine/values.h"

namespace ptx {

struct SmallFormat {
  int exponent_bits, mantissa_bits;
  u32 largest;   // the code of the greatest finite value
  u32 infinity;  // the code that stands for what is too large: the greatest value if saturating
  u32 nan;
};

constexpr SmallFormat kHalfFormat{5, 10, 0x7bff, 0x7c00, 0x7fff};
constexpr SmallFormat kBf16Format{8, 7, 0x7f7f, 0x7f80, 0x7fff};
constexpr SmallFormat kE4m3Format{4, 3, 0x7e, 0x7e, 0x7f};
constexpr SmallFormat kE5m2Format{5, 2, 0x7b, 0x7b, 0x7f};

// mantissa / 2^shift as an integer.
constexpr u64 ShiftRounded(u64 mantissa, int shift, Rounding rounding, bool negative) {
  const u64 kept = mantissa >> shift, lost = mantissa & ((u64{1} << shift) - 1);
  const u64 half = u64{1} << (shift - 1);
  switch (rounding) {
    case Rounding::kZero: return kept;
    case Rounding::kDown: return kept + (negative && lost != 0);
    case Rounding::kUp: return kept + (!negative && lost != 0);
    case Rounding::kAway: return kept + (lost >= half);
    default: return kept + (lost > half || (lost == half && (kept & 1) != 0));
  }
}

// On integers alone, since a kernel of halves is made of this.
inline u32 ToSmall(double x, const SmallFormat& format, Rounding rounding) {
  const u64 bits = BitsOf(x) & ~(u64{1} << 63);
  const bool negative = std::signbit(x);
  const u32 sign = negative ? 1U << (format.exponent_bits + format.mantissa_bits) : 0;
  constexpr u64 kInfinity = u64{0x7ff} << 52;
  if (bits == 0) return sign;
  if (bits > kInfinity) return format.nan;
  if (bits == kInfinity) return sign | format.infinity;

  const int bias = (1 << (format.exponent_bits - 1)) - 1, least = 1 - bias;
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  // One exponent above the bias is a value in e4m3 and too large elsewhere: the code says which.
  if (exponent <= bias + 1) {
    const u64 mantissa = (bits & ((u64{1} << 52) - 1)) | u64{exponent > -1023} << 52;
    const int scale = std::max(exponent, least);
    const int shift = std::min(52 - format.mantissa_bits + scale - exponent, 62);
    const u32 code = static_cast<u32>(ShiftRounded(mantissa, shift, rounding, negative)) +
                     (static_cast<u32>(scale - least) << format.mantissa_bits);
    if (code <= format.largest) return sign | code;
  }
  const bool towards_zero = rounding == Rounding::kZero ||
                            (rounding == Rounding::kDown && !negative) ||
                            (rounding == Rounding::kUp && negative);
  return sign | (towards_zero ? format.largest : format.infinity);
}

inline u16 ToHalf(double x, Rounding rounding) {
  return static_cast<u16>(ToSmall(x, kHalfFormat, rounding));
}
inline u16 ToBf16(double x, Rounding rounding) {
  return static_cast<u16>(ToSmall(x, kBf16Format, rounding));
}
inline u8 ToE4m3(double x) { return static_cast<u8>(ToSmall(x, kE4m3Format, Rounding::kNearest)); }
inline u8 ToE5m2(double x) { return static_cast<u8>(ToSmall(x, kE5m2Format, Rounding::kNearest)); }

inline double FromHalf(u16 half) {
  const u64 bits = half, sign = bits >> 15 << 63, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return std::copysign(magnitude == 0x7c00 ? INFINITY : NAN, std::bit_cast<double>(sign));
  if (magnitude >= 0x400)  // the exponent's bias is 1023 instead of 15
    return std::bit_cast<double>(sign | ((magnitude << 42) + (u64{1023 - 15} << 52)));
  return std::copysign(static_cast<double>(magnitude) * 0x1p-24, std::bit_cast<double>(sign));
}
inline double FromBf16(u16 bits) { return FloatOf(u64{bits} << 16); }
inline double FromE4m3(u8 code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude = (code & 127) == 127 ? NAN
                           : exponent != 0     ? std::ldexp(8 + mantissa, exponent - 10)
                                               : std::ldexp(mantissa, -9);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

// a + b rounded to odd, so that one more rounding, to fewer bits, is correct (Boldo and Melquiond
// 2008). The error term is Knuth's; volatile keeps the compiler from simplifying it away.
inline double SumToOdd(double a, double b) {
  volatile double va = a, vb = b, vsum = va + vb;
  volatile double b_part = vsum - va, a_part = vsum - b_part;
  volatile double error = (va - a_part) + (vb - b_part);
  const double sum = vsum;
  if (error == 0 || !std::isfinite(sum) || sum == 0) return sum;
  u64 bits = BitsOf(sum);
  if ((bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : ~u64{0};
  return std::bit_cast<double>(bits);
}

}  // namespace ptx
