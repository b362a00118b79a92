// Private to the cuda kernels of low_rank.h.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cuda_launch.cuh"
#include "kernels/cuda_saturate.cuh"

namespace slimgrad::kernels::cuda {

// Sum of a[i * a_step] * b[i * b_step] for i < n, ascending, in fp64; then to fp32, saturating.
__device__ inline float WideProduct(const float* a, std::size_t a_step, const float* b,
                                    std::size_t b_step, std::size_t n) {
  double sum = 0;
#pragma unroll 4
  for (std::size_t i = 0; i < n; ++i)
    sum += static_cast<double>(a[i * a_step]) * static_cast<double>(b[i * b_step]);
  return SaturateToFloat(sum);
}

}  // namespace slimgrad::kernels::cuda
