// Sums that stay finite: part of the cpu kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace slimgrad::kernels::cpu {

// The least magnitude that is not finite; and, as a mask, the exponent.
inline constexpr std::uint32_t kF32Infinity = 0x7F800000;

// a + b, except that finite terms give the largest finite fp32 of the sum's sign instead of
// infinity. & and not &&: without branches, so that loops over it vectorise.
inline float SaturatedSum(float a, float b) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float sum = a + b;
  const bool finite_terms = (std::fabs(a) <= kMax) & (std::fabs(b) <= kMax);  // NOLINT
  const float clamped = std::copysign(kMax, sum);
  return finite_terms & (std::fabs(sum) > kMax) ? clamped : sum;  // NOLINT
}

// fp64 to fp32; what is finite but too large saturates.
inline float SaturateToFloat(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (std::isfinite(value)) value = std::clamp(value, -kMax, kMax);
  return static_cast<float>(value);
}

}  // namespace slimgrad::kernels::cpu
