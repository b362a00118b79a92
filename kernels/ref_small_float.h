// Private to the reference kernels: fp16 and bf16 by arithmetic on exact fp64 values, with no bit
// of the fp32 format in it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace slimgrad::kernels::ref {

// A 16-bit float: sign, exponent, `fraction_bits`. Values below 2^min_exponent are subnormal.
struct SmallFloat {
  int fraction_bits;
  int min_exponent;
  double largest;

  std::uint32_t infinity() const { return 0x7FFFU >> fraction_bits << fraction_bits; }
};

inline constexpr SmallFloat kHalf = {10, -14, 65504.0};
inline constexpr SmallFloat kBrain = {7, -126, 0x1.FEp127};

struct Rounded {
  std::uint16_t code;
  bool overflowed;
};

inline Rounded ToSmallFloat(const SmallFloat& format, float value, bool saturate) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto code = [&](std::uint32_t magnitude) {
    return static_cast<std::uint16_t>(sign | magnitude);
  };
  if (std::isnan(value))
    return {code(format.infinity() + (1U << (format.fraction_bits - 1))), false};
  if (std::isinf(value)) return {code(format.infinity()), false};
  const double magnitude = std::fabs(static_cast<double>(value));
  const int exponent =
      magnitude == 0 ? format.min_exponent : std::max(std::ilogb(magnitude), format.min_exponent);
  const double spacing = std::ldexp(1.0, exponent - format.fraction_bits);
  // How many spacings: exact, then rounded to the nearest integer, ties to even.
  const double steps = std::nearbyint(magnitude / spacing);
  if (steps * spacing > format.largest) return {code(format.infinity() - (saturate ? 1 : 0)), true};
  // The codes of neighbours differ by one, across powers of two as well.
  const double below = std::ldexp(exponent - format.min_exponent, format.fraction_bits);
  return {code(static_cast<std::uint32_t>(below + steps)), false};
}

inline float FromSmallFloat(const SmallFloat& format, std::uint16_t code) {
  const double sign = (code & 0x8000) != 0 ? -1 : 1;
  const std::uint32_t fraction = code & ((1U << format.fraction_bits) - 1);
  const std::uint32_t exponent = (code & 0x7FFFU) >> format.fraction_bits;
  if ((code & 0x7FFFU) > format.infinity())
    return static_cast<float>(std::copysign(std::numeric_limits<double>::quiet_NaN(), sign));
  if ((code & 0x7FFFU) == format.infinity())
    return static_cast<float>(sign * std::numeric_limits<double>::infinity());
  const double whole = exponent == 0 ? 0 : std::ldexp(1.0, format.fraction_bits);
  const int power =
      format.min_exponent + std::max(0, static_cast<int>(exponent) - 1) - format.fraction_bits;
  return static_cast<float>(sign * std::ldexp(whole + fraction, power));
}

}  // namespace slimgrad::kernels::ref
