// Private to the cuda kernels: what the kernels of top-k know of each other.
//
// The order is by keys, the 31 bits below the sign. A chain of kernels narrows a window of keys
// until it is the k-th largest key, the cut; the last kernel writes what the cut selects. What one
// kernel finds out for the next stands in a Search on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_block.cuh"
#include "kernels/cuda_pack.cuh"

namespace slimgrad::kernels::cuda {

using Key = std::uint32_t;

inline constexpr Key kKeys = Key{1} << 31;
inline constexpr Key kInfinityKey = 0x7F800000;

__device__ inline Key KeyOf(float x) { return __float_as_uint(x) & (kKeys - 1); }

// Selects keys from `least` on, and the first `ties` elements of the key below that.
struct Cut {
  Key least;
  std::uint64_t ties;

  __device__ bool Takes(Key key) const { return key >= least; }
  __device__ bool Ties(Key key) const { return ties > 0 && key + 1 == least; }
};

inline constexpr unsigned kDigit = 11;
inline constexpr unsigned kBins = 1U << kDigit;

// A range of keys in bins of 2^shift. The keys of all floats take three digits: 11, 11 and 9 bits.
struct Window {
  Key base;
  Key width;
  unsigned shift;

  __host__ __device__ static Window Of(Key base, Key width) {
    unsigned shift = 0;
    while (width > 0 && (width - 1) >> shift >= kBins) ++shift;
    return {base, width, shift};
  }
  __device__ bool Has(Key key) const { return key - base < width; }
  __device__ unsigned BinOf(Key key) const { return (key - base) >> shift; }
  __device__ Window Bin(unsigned bin) const {
    return {base + (bin << shift), Key{1} << shift, shift > kDigit ? shift - kDigit : 0};
  }
};

// What the sample says: the k-th key is likely in [least, end).
struct Bounds {
  Key least;
  Key end;
  std::uint32_t tied;  // the key least - 1 is frequent, and might be the k-th
};

inline constexpr unsigned kPasses = 4;

// Zero at first, but for the bounds.
struct Search {
  // Where the k-th key is; `above` elements have larger keys than the window. Once it is the only
  // key there, the cut stands.
  Window window;
  std::uint64_t above;
  std::uint32_t settled;
  std::uint32_t in_list;  // the window's elements, and all above it, are on the list
  Cut cut;

  // Counted by the first pass.
  std::uint64_t larger;  // elements from bounds.end on
  std::uint64_t tied;    // elements of the key bounds.least - 1, if it is frequent
  std::uint64_t listed;  // wanted on the list, which may have less room

  unsigned arrived[kPasses];
  std::uint64_t bins[kPasses][kBins];

  Bounds bounds;
};

// Elements from bounds.least on; those of a tile side by side, tiles in any order.
struct List {
  std::uint32_t* indices;  // null: keys from bounds.end on are not listed
  float* values;
  std::uint64_t room;
  uint2* tiles;  // where the elements of each tile begin, and how many they are
};

// Where results go. An element for which there is no room is dropped.
struct Selected {
  std::uint32_t* indices;
  float* values;
  std::uint64_t room;
  float* residual;  // if not null, becomes 0 at the indices

  __device__ void Put(std::uint64_t at, std::size_t index, float value) const {
    if (at >= room) return;
    indices[at] = static_cast<std::uint32_t>(index);
    values[at] = value;
    if (residual != nullptr) residual[index] = 0.0F;
  }
};

// The bin in which the element of a rank lies, from 1, counted from the last bin down; behind it
// are `behind` elements. The bins' sum is at least the rank. Whole blocks of kBlock threads call
// it.
template <class Count>
struct Found {
  unsigned bin;
  Count behind;
  Count inside;
};
template <unsigned kBlock, class Count, class Load>
__device__ Found<Count> FindRank(Load load, Count rank) {
  constexpr unsigned kEach = kBins / kBlock;
  __shared__ Found<Count> found;
  Count counts[kEach];
  Count sum = 0;
  const unsigned last = kBins - 1 - threadIdx.x * kEach;
#pragma unroll
  for (unsigned i = 0; i < kEach; ++i) sum += counts[i] = load(last - i);
  Count behind = BlockSum<kBlock>(sum).before;
  if (behind < rank && rank <= behind + sum) {
#pragma unroll
    for (unsigned i = 0; i < kEach; ++i) {
      if (behind < rank && rank <= behind + counts[i]) found = {last - i, behind, counts[i]};
      behind += counts[i];
    }
  }
  __syncthreads();
  const Found<Count> result = found;
  __syncthreads();
  return result;
}

// The key of a rank, from 1, among kEach elements of each thread of a block, those that are
// `valid`.
struct Ranked {
  Key key;
  std::uint32_t larger;
  std::uint32_t equal;
};
template <unsigned kBlock, int kEach>
__device__ Ranked SelectInBlock(const float (&x)[kEach], std::uint32_t valid, std::uint32_t rank) {
  __shared__ std::uint32_t bins[kBins];
  Window window = Window::Of(0, kKeys);
  std::uint32_t above = 0;
  for (;;) {
    for (unsigned b = threadIdx.x; b < kBins; b += kBlock) bins[b] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const Key key = KeyOf(x[i]);
      if ((valid >> i & 1) != 0 && window.Has(key)) atomicAdd(&bins[window.BinOf(key)], 1U);
    }
    __syncthreads();
    const auto found = FindRank<kBlock>([&](unsigned b) { return bins[b]; }, rank - above);
    above += found.behind;
    if (window.shift == 0) return {window.base + found.bin, above, found.inside};
    window = window.Bin(found.bin);
  }
}

// A tile of the tensor, a block's work at a time. A warp has kWarpTile elements side by side, as
// kAccesses of four for each lane.
inline constexpr int kEach = 16;
inline constexpr int kAccess = 4;
inline constexpr unsigned kWarpTile = kWarp * kEach;
inline constexpr unsigned kSelectTile = kThreads * kEach;

struct SelectTile {
  float at[kEach];
  std::uint32_t valid;  // a bit for each that is there

  template <class Test>
  __device__ std::uint32_t Mask(Test test) const {
    std::uint32_t mask = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (test(at[i])) mask |= 1U << i;
    return mask & valid;
  }
};

// Where a thread's element i stands in its tile.
__device__ inline unsigned PlaceInTile(unsigned i) {
  return WarpOfBlock() * kWarpTile + i / kAccess * (kWarp * kAccess) + Lane() * kAccess +
         i % kAccess;
}

// Calls body(i, place in the tile) for each of this thread's elements, the last tile's too.
template <class Body>
__device__ void ForTile(std::uint32_t mask, Body body) {
  for (; mask != 0; mask &= mask - 1) {
    const unsigned i = static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1;
    body(i, PlaceInTile(i));
  }
}

// x has at least `left` elements.
template <bool kPacked>
__device__ SelectTile LoadTile(const float* x, std::size_t left) {
  SelectTile tile = {};
  if (left >= kSelectTile) {
    tile.valid = (1U << kEach) - 1;
#pragma unroll
    for (int a = 0; a < kEach; a += kAccess) {
      if constexpr (kPacked) {
        const auto pack = LoadPack<kAccess>(x + PlaceInTile(a));
        for (int c = 0; c < kAccess; ++c) tile.at[a + c] = pack.at[c];
      } else {
        for (int c = 0; c < kAccess; ++c) tile.at[a + c] = x[PlaceInTile(a + c)];
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (PlaceInTile(i) >= left) continue;
      tile.at[i] = x[PlaceInTile(i)];
      tile.valid |= 1U << i;
    }
  }
  return tile;
}

// How many elements of a warp's tile, masked by each lane, stand before each: the lanes' counts of
// four accesses are bytes of a word, so that one sum over the warp does for all.
class WarpPlace {
 public:
  explicit __device__ WarpPlace(std::uint32_t mask) : mask_(mask) {
    std::uint32_t counts = 0;
#pragma unroll
    for (int a = 0; a < kEach / kAccess; ++a)
      counts |= static_cast<std::uint32_t>(__popc(mask >> (4 * a) & 0xFU)) << (8 * a);
    const std::uint32_t inclusive = WarpInclusiveSum(counts);  // at most 128 a byte
    before_ = inclusive - counts;
    totals_ = __shfl_sync(~0U, inclusive, kWarp - 1);
  }

  __device__ std::uint32_t total() const { return SumOfBytes(totals_); }

  // Before element i of this lane, be it masked itself or not.
  __device__ std::uint32_t Before(unsigned i) const {
    const unsigned a = i / kAccess;
    const std::uint32_t in_access = mask_ >> (kAccess * a) & ((1U << i % kAccess) - 1);
    return SumOfBytes(totals_ & ((1U << 8 * a) - 1)) + (before_ >> 8 * a & 0xFFU) +
           static_cast<std::uint32_t>(__popc(in_access));
  }

 private:
  static __device__ std::uint32_t SumOfBytes(std::uint32_t word) {
    return __dp4a(word, 0x01010101U, 0U);
  }

  std::uint32_t mask_;
  std::uint32_t before_;
  std::uint32_t totals_;
};

constexpr std::size_t TilesOf(std::size_t n) { return BlockCount(n, kSelectTile); }

// Words of the looks back over a tensor's tiles, which are 0 at first.
constexpr std::size_t WordsFor(std::size_t n) { return 1 + 2 * TilesOf(n); }

// Ranks in the sample, from 1, between which that of the k-th element likely is; `lower` may be
// beyond the sample, `upper` 0.
struct SampleRanks {
  unsigned lower;
  unsigned upper;
};

// kernels/select_search_cuda.cu: from x, or from the residual once x was added, to the cut. Clears
// `words`.
struct SearchPlan {
  const float* x;
  float* residual;  // null without feedback
  std::size_t n;
  std::uint64_t k;
  SampleRanks ranks;
  List list;
  Search* search;
  std::uint64_t* words;
  std::size_t word_count;
};
void FindCut(const Backend& backend, const SearchPlan& plan);

// kernels/select_direct_cuda.cu: the first selected.room elements of at most kDirectElements, at
// least one; residual null without feedback.
void SelectDirectly(const Backend& backend, const float* x, float* residual, std::size_t n,
                    const Selected& selected);

// kernels/select_write_cuda.cu: what the cut selects; and what is from `least` on, and how many of
// these there are.
void WriteSelected(const Backend& backend, const float* x, std::size_t n, const List& list,
                   const Search* search, std::uint64_t* words, const Selected& selected);
void WriteAbove(const Backend& backend, const float* x, std::size_t n, Key least,
                std::uint64_t* words, const Selected& selected, std::uint64_t* found);

}  // namespace slimgrad::kernels::cuda
