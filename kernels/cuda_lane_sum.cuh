// Private to the cuda kernels: the LaneSum of kernels/sums.h over members that a function computes,
// by a warp or by a block of threads.
//
// A lane's additions are a chain, so a run of 4096 members is work for 64 threads at most; a warp
// takes it with two lanes a thread. What a block of threads sums should therefore be several runs,
// or lie in shared memory, where a chain is short beside the loads that other blocks wait for.
#pragma once

#include <cstddef>

#include "kernels/cuda_pack.cuh"
#include "kernels/sums.h"

namespace slimgrad::kernels::cuda {

// The tree, to all threads of a group; `low` and `high` are a thread's lanes t and t + 32. A group
// is 1, 2, 4 ... or 32 neighbours; one of fewer than 32 for runs of no more members than threads.
// Whole warps call it. Lanes start at +0, so no sum is -0, and a lane without members changes
// nothing.
template <class T>
__device__ T JoinGroup(unsigned group, T low, T high) {
  T sum = low + high;
  for (unsigned width = group / 2; width > 0; width /= 2)
    sum += __shfl_down_sync(~0U, sum, width, group);
  return __shfl_sync(~0U, sum, 0, group);
}

// Calls add(half, i) for the members i of a run that this thread of a group adds up, in order: to
// its low lane for half = 0, to its high one for 1; kAtOnce of each without a branch.
template <int kAtOnce = 4, class Add>
__device__ void ForGroup(unsigned group, std::uint32_t n, const Add& add) {
  std::uint32_t i = threadIdx.x % group;
#pragma unroll kAtOnce
  for (; i + kWarp < n; i += kSumLanes) {
    add(0, i);
    add(1, i + kWarp);
  }
  if (i < n) add(0, i);
}

// Sum of member(0) ... member(n - 1), n <= kSumBlock, to all threads of the group. T is float or
// double, what member returns. Whole warps call it; groups' runs may differ.
template <class T, class Member>
__device__ T GroupRunSum(unsigned group, std::uint32_t n, const Member& member) {
  T lanes[2] = {0, 0};
  ForGroup(group, n, [&](int half, std::uint32_t i) { lanes[half] += member(i); });
  return JoinGroup(group, lanes[0], lanes[1]);
}

// The same of a warp.
template <class T, class Member>
__device__ T WarpRunSum(std::uint32_t n, const Member& member) {
  return GroupRunSum<T>(kWarp, n, member);
}

// Sum of member(0) ... member(n - 1), any n, to all threads of the block: a warp takes a run. Whole
// blocks call it, of full warps; what members read in shared memory was written before a
// __syncthreads(), and may be overwritten after the call.
template <class T, class Member>
__device__ T BlockLaneSum(std::size_t n, const Member& member) {
  __shared__ T sums[32];
  const std::size_t warps = blockDim.x / kWarp;
  const std::size_t warp = WarpOfBlock();
  T total = 0;
  for (std::size_t first = 0; first < n; first += warps * kSumBlock) {
    const std::size_t begin = first + warp * kSumBlock;
    if (begin < n) {
      const T sum =
          WarpRunSum<T>(static_cast<std::uint32_t>(n - begin < kSumBlock ? n - begin : kSumBlock),
                        [&](std::uint32_t i) { return member(begin + i); });
      if (Lane() == 0) sums[warp] = sum;
    }
    __syncthreads();
    for (std::size_t w = 0; w < warps && first + w * kSumBlock < n; ++w) total += sums[w];
    __syncthreads();
  }
  return total;
}

// A row is 16 threads, half a warp, that hold the 64 lanes of a run, four neighbours each: what
// they read of fp32 in memory at a time is 16 bytes each. For runs that are many, and in memory.
inline constexpr unsigned kRowThreads = 16;

template <class T>
struct RowLanes {
  T at[4] = {};  // lanes 4t ... 4t + 3, of thread t of the row

  // The sum, to the first thread of the row. Whole rows call it.
  __device__ T Join() const {
    const unsigned mask = 0xFFFFU << (threadIdx.x & kRowThreads);
    T sums[4] = {at[0], at[1], at[2], at[3]};
    for (unsigned width = kRowThreads / 2; width > 0; width /= 2)
      for (T& sum : sums) sum += __shfl_down_sync(mask, sum, width, kRowThreads);
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }
};

// Calls add(k, value) for what this thread of a row has of members 0 ... n - 1 of a run, in order;
// k is the lane within RowLanes::at. load.template operator()<kWidth>(i) returns members i ...
// i + kWidth - 1 as a Pack: four where kPacked, else one.
template <bool kPacked, class Load, class Add>
__device__ void ForRow(std::uint32_t n, const Load& load, const Add& add) {
  std::uint32_t i = threadIdx.x % kRowThreads * 4;
#pragma unroll 4
  for (; i + 4 <= n; i += kSumLanes) {
    if constexpr (kPacked) {
      const auto members = load.template operator()<4>(i);
      for (int k = 0; k < 4; ++k) add(k, members.at[k]);
    } else {
      for (int k = 0; k < 4; ++k) add(k, load.template operator()<1>(i + k).at[0]);
    }
  }
  for (int k = 0; k < 4; ++k)
    if (i + k < n) add(k, load.template operator()<1>(i + k).at[0]);
}

}  // namespace slimgrad::kernels::cuda
