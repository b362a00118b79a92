// Private to the cuda kernels: the LaneSum of kernels/sums.h over members that a function computes,
// by a warp or by a block of threads.
//
// A lane's additions are a chain, so a run of 4096 members is work for 64 threads at most; a warp
// takes it with two lanes a thread. What a block of threads sums should therefore be several runs,
// or lie in shared memory, where a chain is short beside the loads that other blocks wait for.
#pragma once

#include <cstddef>

#include "kernels/cuda_launch.cuh"
#include "kernels/sums.h"

namespace slimgrad::kernels::cuda {

// Sum of member(0) ... member(n - 1), n <= kSumBlock, to all threads of the warp. T is float or
// double, what member returns. Whole warps call it. Never -0, since lanes start at +0; so a lane
// without members changes nothing.
template <class T, class Member>
__device__ T WarpRunSum(std::uint32_t n, const Member& member) {
  const std::uint32_t lane = threadIdx.x % kWarp;
  T low = 0;
  T high = 0;
  std::uint32_t i = lane;
#pragma unroll 4
  for (; i + kWarp < n; i += kSumLanes) {
    low += member(i);
    high += member(i + kWarp);
  }
  if (i < n) low += member(i);
  T sum = low + high;
  for (unsigned width = kWarp / 2; width > 0; width /= 2) sum += __shfl_down_sync(~0U, sum, width);
  return __shfl_sync(~0U, sum, 0);
}

// Sum of member(0) ... member(n - 1), any n, to all threads of the block: a warp takes a run. Whole
// blocks call it, of full warps; what members read in shared memory was written before a
// __syncthreads(), and may be overwritten after the call.
template <class T, class Member>
__device__ T BlockLaneSum(std::size_t n, const Member& member) {
  __shared__ T sums[32];
  const std::size_t warps = blockDim.x / kWarp;
  const std::size_t warp = threadIdx.x / kWarp;
  T total = 0;
  for (std::size_t first = 0; first < n; first += warps * kSumBlock) {
    const std::size_t begin = first + warp * kSumBlock;
    if (begin < n) {
      const T sum =
          WarpRunSum<T>(static_cast<std::uint32_t>(n - begin < kSumBlock ? n - begin : kSumBlock),
                        [&](std::uint32_t i) { return member(begin + i); });
      if (threadIdx.x % kWarp == 0) sums[warp] = sum;
    }
    __syncthreads();
    for (std::size_t w = 0; w < warps && first + w * kSumBlock < n; ++w) total += sums[w];
    __syncthreads();
  }
  return total;
}

}  // namespace slimgrad::kernels::cuda
