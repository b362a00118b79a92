// Private to the cuda kernels: sums that stay finite.
#pragma once

#include "kernels/cuda_half.cuh"

namespace slimgrad::kernels::cuda {

// As AddSaturated of kernels/elementwise.h adds two numbers. A NaN stays as it is, but for being
// quiet then, where the hardware's sum would be another, without its sign.
__device__ inline float AddSaturating(float a, float b) {
  const float sum = a + b;
  if (IsFinite(sum)) return sum;
  const float term = IsNan(a) ? a : b;
  if (IsNan(term)) return __uint_as_float(__float_as_uint(term) | kF32QuietNan);
  return IsFinite(a) && IsFinite(b) ? copysignf(3.402823466e+38F, sum) : sum;
}

__device__ inline bool IsFinite(double x) { return fabs(x) <= 1.797693134862315708e+308; }

// fp64 to fp32; what is finite but too large saturates. A NaN is the canonical one.
__device__ inline float SaturateToFloat(double value) {
  constexpr double kMax = 3.40282346638528859812e+38;
  if (IsFinite(value)) value = fmin(fmax(value, -kMax), kMax);
  return static_cast<float>(value);
}

}  // namespace slimgrad::kernels::cuda
