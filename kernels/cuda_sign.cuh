// Private to the cuda kernels of the sign family: what is encoded, bits, and which block an element
// belongs to.
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_saturate.cuh"
#include "kernels/sign.h"

namespace slimgrad::kernels::cuda {

// Elements that a block of threads takes at a time: 16 KB in shared memory, with which 8 blocks of
// 256 threads fit a multiprocessor.
inline constexpr std::uint32_t kSignTile = 4096;

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

// What is encoded: x; or with error feedback the sum of residual and x. Read, and then added,
// apart.
struct Plain {
  static constexpr bool kFeedback = false;
  const float* x;

  template <int kWidth>
  __device__ Pack<float, kWidth> Load(std::size_t i) const {
    return LoadPack<kWidth>(x + i);
  }
  template <int kWidth>
  static __device__ Pack<float, kWidth> Sum(const Pack<float, kWidth>& loaded) {
    return loaded;
  }
};
template <int kWidth>
struct Terms {
  Pack<float, kWidth> residual;
  Pack<float, kWidth> x;
};
struct Fed {
  static constexpr bool kFeedback = true;
  const float* x;
  float* residual;

  template <int kWidth>
  __device__ Terms<kWidth> Load(std::size_t i) const {
    return {LoadPack<kWidth>(residual + i), LoadPack<kWidth>(x + i)};
  }
  template <int kWidth>
  static __device__ Pack<float, kWidth> Sum(const Terms<kWidth>& loaded) {
    Pack<float, kWidth> sums;
    for (int k = 0; k < kWidth; ++k)
      sums.at[k] = AddSaturating(loaded.residual.at[k], loaded.x.at[k]);
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

// How many times a thread reads before it writes anything: what was read may be what is written, so
// the compiler would not have the loads on their way together.
inline constexpr std::uint32_t kAtOnce = 4;

// For runs [i, i + kWidth) that make up a tile: as ForTile below.
template <int kWidth, class Load, class Store>
__device__ void ForWholeTile(const Load& load, const Store& store) {
  constexpr std::uint32_t kStep = kThreads * kWidth;
  for (std::uint32_t i = threadIdx.x * kWidth; i < kSignTile; i += kAtOnce * kStep) {
    decltype(load.template operator()<kWidth>(i)) loaded[kAtOnce];
#pragma unroll
    for (std::uint32_t u = 0; u < kAtOnce; ++u)
      loaded[u] = load.template operator()<kWidth>(i + u * kStep);
#pragma unroll
    for (std::uint32_t u = 0; u < kAtOnce; ++u)
      store.template operator()<kWidth>(i + u * kStep, loaded[u]);
  }
}

// For disjoint runs [i, i + kWidth) that make up [0, n), kWidth being kFloats where kPacked, and
// else, or at the end, 1: calls store.template operator()<kWidth>(i, loaded) with what
// load.template operator()<kWidth>(i) returned. Whole blocks of kThreads call it.
template <bool kPacked, class Load, class Store>
__device__ void ForTile(std::uint32_t n, const Load& load, const Store& store) {
  constexpr std::uint32_t kWidth = kPacked ? kFloats : 1;
  if (n == kSignTile) return ForWholeTile<kWidth>(load, store);
  for (std::uint32_t i = threadIdx.x * kWidth; i + kWidth <= n; i += kThreads * kWidth)
    store.template operator()<kWidth>(i, load.template operator()<kWidth>(i));
  const std::uint32_t rest = n / kWidth * kWidth + threadIdx.x;
  if (kPacked && rest < n) store.template operator()<1>(rest, load.template operator()<1>(rest));
}

template <int kWidth>
__device__ std::uint32_t BitsOf(const Pack<float, kWidth>& values) {
  std::uint32_t bits = 0;
  for (int k = 0; k < kWidth; ++k)
    bits |= static_cast<std::uint32_t>(IsPositive(values.at[k])) << k;
  return bits;
}

// Writes a byte, from its 8 elements' threads. Whole warps call it; thread t has the bits of
// elements i ... i + kWidth - 1, i being kWidth * t and more.
template <int kWidth>
__device__ void PutByte(std::uint32_t mine, std::uint32_t i, std::uint32_t n, std::uint8_t* bits) {
  std::uint32_t byte = 0;
  if constexpr (kWidth == 4)
    byte = mine | __shfl_down_sync(~0U, mine, 1) << kWidth;
  else
    byte = __ballot_sync(~0U, mine != 0) >> Lane();
  if (i < n && i % 8 == 0) bits[i / 8] = static_cast<std::uint8_t>(byte);
}

// The n elements of a tile that begins at element `begin`: calls visit.template operator()<kWidth>
// (i, values) with all of them, in turn, and writes their bits to bytes that begin with the tile's.
// Whole blocks of kThreads call it.
template <bool kPacked, class Source, class Visit>
__device__ void PutBits(const Source& source, std::size_t begin, std::uint32_t n,
                        const Visit& visit, std::uint8_t* bits) {
  constexpr std::uint32_t kWidth = kPacked ? kFloats : 1;
  const auto visited = [&]<int kNow>(std::uint32_t i, const auto& loaded) {
    const auto values = Source::template Sum<kNow>(loaded);
    visit.template operator()<kNow>(i, values);
    return BitsOf(values);
  };
  if (n == kSignTile) {
    return ForWholeTile<kWidth>(
        [&]<int kNow>(std::uint32_t i) { return source.template Load<kNow>(begin + i); },
        [&]<int kNow>(std::uint32_t i, const auto& loaded) {
          PutByte<kNow>(visited.template operator()<kNow>(i, loaded), i, n, bits);
        });
  }
  const std::uint32_t first = threadIdx.x * kWidth;
  for (std::uint32_t i = first; i - first < n; i += kThreads * kWidth) {
    std::uint32_t mine = 0;
    if (i + kWidth <= n) {
      mine = visited.template operator()<kWidth>(i, source.template Load<kWidth>(begin + i));
    } else {
      for (std::uint32_t k = 0; i + k < n; ++k)
        mine |= visited.template operator()<1>(i + k, source.template Load<1>(begin + i + k)) << k;
    }
    PutByte<kWidth>(mine, i, n, bits);
  }
}

// Blocks' size, and what divides by it. Quotients of numbers below 2 kSignTile are the upper half
// of a product: the magic number is at most 1 too large, and 2 kSignTile * kSignTile is below 2^31.
struct BlockSize {
  std::size_t size;
  std::uint32_t magic = 0;  // 2^31 / size, rounded up, where size <= kSignTile

  explicit BlockSize(std::size_t block) : size(block) {
    if (block <= kSignTile)
      magic = static_cast<std::uint32_t>(((std::size_t{1} << 31) + block - 1) / block);
  }
  __device__ std::uint32_t Quotient(std::uint32_t i) const { return __umulhi(i << 1, magic); }
};

// The blocks of a tile's elements; the tile begins at an element `begin`, a multiple of kSignTile.
class TileBlocks {
 public:
  __device__ TileBlocks(const BlockSize& block, std::size_t begin)
      : block_(block), first_(begin / block.size), before_(begin % block.size) {}

  // Of element i of the tile.
  __device__ std::size_t Of(std::uint32_t i) const {
    if (block_.size > kSignTile) return first_ + (before_ + i >= block_.size ? 1 : 0);
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

// A grid with a block of threads for each item. Items have 100 elements and more, so that no memory
// holds as many as a grid cannot have.
inline unsigned BlockEach(std::size_t items) {
  SLIMGRAD_CHECK(items <= INT_MAX);
  return static_cast<unsigned>(items);
}

// Encode of kernels/sign.h for blocks of any size, in passes; `down` is null unless kTwo. n >
// kSignTile, or two blocks and more; block <= n.
template <bool kTwo, class Source>
void EncodeLong(const Backend& backend, const Source& source, std::size_t n, std::size_t block,
                std::span<std::uint8_t> bits, float* up, float* down);

}  // namespace slimgrad::kernels::cuda
