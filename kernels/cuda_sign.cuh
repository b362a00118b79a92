// Private to the cuda kernels of the sign family: what is encoded, bits, and which block an element
// belongs to.
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_saturate.cuh"
#include "kernels/sign.h"

namespace slimgrad::kernels::cuda {

// Elements that a block of threads takes at a time: 16 KB in shared memory, with which 8 blocks of
// 256 threads fit a multiprocessor.
inline constexpr std::uint32_t kTile = 4096;

// fp32 that a thread takes at a time: one access, of which a warp's fill whole sectors.
template <bool kPacked>
inline constexpr int kTaken = kPacked ? 4 : 1;

// What the two bits stand for.
struct Levels {
  float up;
  float down;
};

__device__ inline bool IsPositive(float x) { return x >= 0; }

// What a member adds to its block's two sums; of magnitudes (kTwo false) there is one.
template <bool kTwo>
__device__ float UpOf(float x) {
  return kTwo ? (IsPositive(x) ? x : 0) : fabsf(x);
}
__device__ inline float DownOf(float x) { return IsPositive(x) ? 0 : x; }

// The mean of `count` members of which `sum` is the fp32 LaneSum, `wide` the fp64 one where that is
// not finite.
__device__ inline float MeanOf(float sum, double wide, std::size_t count) {
  if (count == 0) return 0;
  return IsFinite(sum) ? sum / static_cast<float>(count)
                       : SaturateToFloat(wide / static_cast<double>(count));
}

// What is encoded: x; or with error feedback the sum of residual and x.
struct Plain {
  static constexpr bool kFeedback = false;
  const float* x;

  template <int kWidth>
  __device__ Pack<float, kWidth> Take(std::size_t i) const {
    return LoadPack<kWidth>(x + i);
  }
};
struct Fed {
  static constexpr bool kFeedback = true;
  const float* x;
  float* residual;

  template <int kWidth>
  __device__ Pack<float, kWidth> Take(std::size_t i) const {
    const auto terms = LoadPack<kWidth>(x + i);
    auto sums = LoadPack<kWidth>(residual + i);
    for (int k = 0; k < kWidth; ++k) sums.at[k] = AddSaturating(sums.at[k], terms.at[k]);
    return sums;
  }
};

template <class Source>
bool AlignedSource(const Source& source) {
  if constexpr (Source::kFeedback)
    return Aligned(source.x, source.residual);
  else
    return Aligned(source.x);
}

// Calls body.template operator()<kWidth>(i) for disjoint runs [i, i + kWidth) that make up [0, n),
// kWidth being kTaken or, at the end, 1. Whole blocks of kThreads call it.
template <bool kPacked, class Body>
__device__ void ForTile(std::uint32_t n, const Body& body) {
  constexpr int kWidth = kTaken<kPacked>;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x * kWidth; i + kWidth <= n; i += kThreads * kWidth)
    body.template operator()<kWidth>(i);
  const std::uint32_t rest = n / kWidth * kWidth + threadIdx.x;
  if (kPacked && rest < n) body.template operator()<1>(rest);
}

// The bits of a tile's n elements, to bytes that begin with it: take.template operator()<kWidth>(i)
// returns elements i ... i + kWidth - 1. Whole blocks of kThreads call it.
template <bool kPacked, class Take>
__device__ void PutBits(std::uint32_t n, const Take& take, std::uint8_t* bits) {
  constexpr std::uint32_t kWidth = kTaken<kPacked>;
#pragma unroll 4
  for (std::uint32_t first = 0; first < n; first += kThreads * kWidth) {
    const std::uint32_t i = first + threadIdx.x * kWidth;
    std::uint32_t mine = 0;
    if (i + kWidth <= n) {
      const auto values = take.template operator()<kWidth>(i);
      for (std::uint32_t k = 0; k < kWidth; ++k)
        mine |= static_cast<std::uint32_t>(IsPositive(values.at[k])) << k;
    } else {
      for (std::uint32_t k = 0; i + k < n; ++k)
        mine |= static_cast<std::uint32_t>(IsPositive(take.template operator()<1>(i + k).at[0]))
                << k;
    }
    if constexpr (kPacked) {
      mine |= __shfl_down_sync(~0U, mine, 1) << kWidth;
    } else {
      mine = __ballot_sync(~0U, mine != 0) >> (threadIdx.x % kWarp);
    }
    if (i < n && i % 8 == 0) bits[i / 8] = static_cast<std::uint8_t>(mine);
  }
}

// Blocks' size, and what divides by it. Quotients of numbers below 2 kTile are the upper half of a
// product: the magic number is at most 1 too large, and 2 kTile * kTile is below 2^31.
struct BlockSize {
  std::size_t size;
  std::uint32_t magic = 0;  // 2^31 / size, rounded up, where size <= kTile

  explicit BlockSize(std::size_t block) : size(block) {
    if (block <= kTile)
      magic = static_cast<std::uint32_t>(((std::size_t{1} << 31) + block - 1) / block);
  }
  __device__ std::uint32_t Quotient(std::uint32_t i) const { return __umulhi(i << 1, magic); }
};

// The blocks of a tile's elements; the tile begins at an element `begin`, a multiple of kTile.
class TileBlocks {
 public:
  __device__ TileBlocks(const BlockSize& block, std::size_t begin)
      : block_(block), first_(begin / block.size), before_(begin % block.size) {}

  // Of element i of the tile.
  __device__ std::size_t Of(std::uint32_t i) const {
    if (block_.size > kTile) return first_ + (before_ + i >= block_.size ? 1 : 0);
    return first_ + block_.Quotient(static_cast<std::uint32_t>(before_) + i);
  }
  // Whether groups of four belong together.
  __device__ bool InFours() const { return block_.size % 4 == 0; }

 private:
  BlockSize block_;
  std::size_t first_;
  std::size_t before_;  // elements of the first block that lie before the tile
};

// The levels of elements i ... i + kWidth - 1 of a tile; i is a multiple of kWidth. at(b) returns
// those of block b.
template <int kWidth, class LevelsAt>
__device__ Pack<Levels, kWidth> LevelsOf(const TileBlocks& blocks, std::uint32_t i,
                                         const LevelsAt& at) {
  Pack<Levels, kWidth> levels;
  levels.at[0] = at(blocks.Of(i));
  for (int k = 1; k < kWidth; ++k)
    levels.at[k] = blocks.InFours() ? levels.at[0] : at(blocks.Of(i + k));
  return levels;
}

// Blocks of a grid for items that a loop over the grid takes one by one: as many, if it can.
inline unsigned Blocks(std::size_t items) {
  return static_cast<unsigned>(std::min<std::size_t>(items, INT_MAX));
}

// Encode of kernels/sign.h for blocks of any size, in passes; `down` is null unless kTwo. n >
// kTile, or two blocks and more; block <= n.
template <bool kTwo, class Source>
void EncodeLong(const Backend& backend, const Source& source, std::size_t n, std::size_t block,
                std::span<std::uint8_t> bits, float* up, float* down);

}  // namespace slimgrad::kernels::cuda
