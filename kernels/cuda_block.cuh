// Private to the cuda kernels: what the blocks of a grid find out together, without waiting for
// each other or waiting only for blocks that have begun before.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_launch.cuh"

namespace slimgrad::kernels::cuda {

// The lanes before this one.
__device__ inline std::uint32_t LanesBelow() { return (1U << Lane()) - 1; }

template <class T>
__device__ T WarpSum(T value) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0U, value, step);
  return value;
}

// The sum over the lanes up to this one.
template <class T>
__device__ T WarpInclusiveSum(T value) {
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const T below = __shfl_up_sync(~0U, value, step);
    if (Lane() >= step) value += below;
  }
  return value;
}

// The sum over the threads of a block before this one, and of all. Whole blocks of kBlock threads
// call it.
template <class T>
struct BlockPlace {
  T before;
  T total;
};
template <unsigned kBlock, class T>
__device__ BlockPlace<T> BlockSum(T value) {
  constexpr unsigned kWarps = kBlock / kWarp;
  __shared__ T sums[kWarps];
  const T inclusive = WarpInclusiveSum(value);
  __syncthreads();  // the last call's sums are read
  if (Lane() == kWarp - 1) sums[WarpOfBlock()] = inclusive;
  __syncthreads();
  const T scanned = WarpInclusiveSum(Lane() < kWarps ? sums[Lane()] : T{0});
  const T below = __shfl_sync(~0U, scanned, WarpOfBlock() == 0 ? 0 : WarpOfBlock() - 1);
  const T total = __shfl_sync(~0U, scanned, kWarp - 1);
  return {(WarpOfBlock() == 0 ? T{0} : below) + inclusive - value, total};
}

// Whether this block is the last of the grid to come here; it then sees what the others wrote
// before, past its own cache with __ldcg. `arrived` was 0. Whole blocks call it.
__device__ inline bool LastToArrive(unsigned* arrived) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(arrived, 1U) == gridDim.x - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// The number of a block's next piece of work, in the order in which blocks come for it, so that a
// block waits for pieces only that somebody works on. `next` was 0. Whole blocks call it.
__device__ inline std::size_t TakeTicket(std::uint64_t* next) {
  __shared__ std::size_t ticket;
  __syncthreads();
  if (threadIdx.x == 0) ticket = atomicAdd(AsWide(next), Wide{1});
  __syncthreads();
  return ticket;
}

// Sums over pieces of work in one pass (Merrill and Garland 2016, "Single-pass parallel prefix scan
// with decoupled look-back"): a word a piece, 0 before, in which the piece publishes its own sum,
// then the sum up to its end.
class LookBack {
 public:
  explicit __device__ LookBack(std::uint64_t* words) : words_(words) {}

  // The sum of the pieces before, of at most 62 bits. A whole warp calls it, with its piece's sum.
  __device__ std::uint64_t Before(std::size_t piece, std::uint64_t sum) {
    if (piece == 0) {
      Publish(piece, sum, kUpToEnd);
      return 0;
    }
    Publish(piece, sum, kOwn);
    std::uint64_t before = 0;
    for (std::size_t end = piece;; end -= kWarp) {
      const std::uint64_t word = WaitFor(end);
      const std::uint32_t complete = __ballot_sync(~0U, (word & kFlags) == kUpToEnd);
      const unsigned last = complete == 0 ? kWarp - 1 : __ffs(static_cast<int>(complete)) - 1;
      before += WarpSum(Lane() <= last ? word / kUnit : 0);
      if (complete != 0) break;
    }
    Publish(piece, before + sum, kUpToEnd);
    return before;
  }

 private:
  static constexpr std::uint64_t kOwn = 1;
  static constexpr std::uint64_t kUpToEnd = 2;
  static constexpr std::uint64_t kFlags = 3;
  static constexpr std::uint64_t kUnit = 4;

  // A word is whole by itself: no other memory goes with it, and so no fence.
  __device__ void Publish(std::size_t piece, std::uint64_t sum, std::uint64_t flag) {
    volatile std::uint64_t* const word = words_ + piece;
    if (Lane() == 0) *word = sum * kUnit + flag;
  }

  // The word of piece end - 1 - lane; before the first one, a sum of nothing.
  __device__ std::uint64_t WaitFor(std::size_t end) {
    const bool none = Lane() >= end;
    volatile const std::uint64_t* const word = words_ + (none ? 0 : end - 1 - Lane());
    std::uint64_t seen = kUpToEnd;
    do {
      if (!none) seen = *word;
    } while (__any_sync(~0U, seen == 0));
    return seen;
  }

  std::uint64_t* words_;
};

}  // namespace slimgrad::kernels::cuda
