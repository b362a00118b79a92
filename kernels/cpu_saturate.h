// Sums that stay finite: part of the cpu kernels only.
#pragma once

#include <cmath>
#include <limits>

namespace slimgrad::kernels::cpu {

// a + b, except that finite terms give the largest finite fp32 of the sum's sign instead of
// infinity. & and not &&: without branches, so that loops over it vectorise.
inline float SaturatedSum(float a, float b) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float sum = a + b;
  const bool finite_terms = (std::fabs(a) <= kMax) & (std::fabs(b) <= kMax);  // NOLINT
  const float clamped = std::copysign(kMax, sum);
  return finite_terms & (std::fabs(sum) > kMax) ? clamped : sum;  // NOLINT
}

}  // namespace slimgrad::kernels::cpu
