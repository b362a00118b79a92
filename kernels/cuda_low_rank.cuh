// Private to the cuda kernels of low_rank.h.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/check.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/cuda_saturate.cuh"

namespace slimgrad::kernels::cuda {

inline void CheckMatrix(std::size_t size, std::size_t rows, std::size_t cols) {
  SLIMGRAD_CHECK(static_cast<unsigned __int128>(rows) * cols == size);
}

// CHECKs what low_rank.h says about shapes.
inline void CheckProduct(std::size_t m, std::size_t rows, std::size_t cols, std::size_t p,
                         std::size_t q, std::size_t rank) {
  SLIMGRAD_CHECK(rank <= rows && rank <= cols);
  CheckMatrix(m, rows, cols);
  CheckMatrix(p, rows, rank);
  CheckMatrix(q, cols, rank);
}

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
