// From a tensor to the cut of its k largest elements.
//
// Bytes an element that must be moved: 4, with feedback 12. That are: as much in the first pass, if
// the sample's bounds hold and k is small beside n; the list adds 8 for each element on it, and 4
// each time that it is read, from the L2 cache. Where the bounds do not hold, up to 4 in each of
// three more passes.
#include "kernels/cuda_saturate.cuh"
#include "kernels/cuda_select.cuh"
#include "kernels/select_sample.h"

namespace slimgrad::kernels::cuda {
namespace {

constexpr unsigned kBoundsThreads = 1024;
constexpr int kSampleEach = static_cast<int>(kSample / kBoundsThreads);

// A first window is this wide, so that another pass leaves one key.
constexpr Key kFirstWidth = Key{1} << (2 * kDigit);

__device__ void ClearSearch(Search* search, std::uint64_t* words, std::size_t word_count) {
  auto* const numbers = reinterpret_cast<std::uint64_t*>(search);
  for (std::size_t i = FirstItem(); i < offsetof(Search, bounds) / sizeof *numbers;
       i += ItemStride())
    numbers[i] = 0;
  for (std::size_t i = FirstItem(); i < word_count; i += ItemStride()) words[i] = 0;
}

// A key that no float compares with as a key does, a NaN, is not a bound; infinity is.
__device__ Bounds BoundsFromSample(const float (&sample)[kSampleEach], SampleRanks ranks) {
  constexpr std::uint32_t kAll = (1U << kSampleEach) - 1;
  Bounds bounds = {0, kInfinityKey, 0};
  if (ranks.lower <= kSample) {
    const Ranked lower = SelectInBlock<kBoundsThreads>(sample, kAll, ranks.lower);
    bounds.tied = lower.equal > 1 && lower.key < kInfinityKey;
    bounds.least = min(lower.key + bounds.tied, kInfinityKey);
  }
  if (ranks.upper > 0)
    bounds.end =
        min(SelectInBlock<kBoundsThreads>(sample, kAll, ranks.upper).key, kInfinityKey - 1) + 1;
  bounds.end = max(min(bounds.end, bounds.least + kFirstWidth), bounds.least);
  return bounds;
}

// One block takes the sample; the others only clear.
__global__ void __launch_bounds__(kBoundsThreads)
    BoundsKernel(Guard guard, const float* x, const float* residual, std::size_t n,
                 SampleRanks ranks, Search* search, std::uint64_t* words, std::size_t word_count) {
  if (guard.Closed()) return;
  ClearSearch(search, words, word_count);
  if (blockIdx.x != 0) return;
  float sample[kSampleEach];
#pragma unroll
  for (int i = 0; i < kSampleEach; ++i) {
    const std::size_t at = SamplePlace(n, threadIdx.x + i * kBoundsThreads);
    sample[i] = residual == nullptr ? x[at] : AddSaturating(residual[at], x[at]);
  }
  const Bounds bounds = BoundsFromSample(sample, ranks);
  if (threadIdx.x == 0) search->bounds = bounds;
}

// Counts in a block's shared memory. Of like keys behind each other a thread makes one addition.
class BinCounter {
 public:
  explicit __device__ BinCounter(std::uint32_t* bins) : bins_(bins) {}

  __device__ void Add(unsigned bin) {
    if (bin != bin_) {
      Flush();
      bin_ = bin;
    }
    ++count_;
  }
  __device__ void Flush() {
    if (count_ > 0) atomicAdd(bins_ + bin_, count_);
    count_ = 0;
  }

 private:
  std::uint32_t* bins_;
  unsigned bin_ = 0;
  std::uint32_t count_ = 0;
};

// Whole blocks call these two.
__device__ void ClearBins(std::uint32_t* bins) {
  for (unsigned b = threadIdx.x; b < kBins; b += kThreads) bins[b] = 0;
  __syncthreads();
}
__device__ void AddBins(const std::uint32_t* bins, std::uint64_t* total) {
  __syncthreads();
  for (unsigned b = threadIdx.x; b < kBins; b += kThreads)
    if (bins[b] > 0) atomicAdd(AsWide(total + b), Wide{bins[b]});
}

// Narrows the window, which holds the k-th key, by the bins of a pass. Whole blocks call it.
__device__ void Narrow(Search* search, Window window, std::uint64_t above, unsigned pass,
                       std::uint64_t k) {
  const auto found =
      FindRank<kThreads>([&](unsigned b) { return __ldcg(search->bins[pass] + b); }, k - above);
  if (threadIdx.x != 0) return;
  above += found.behind;
  search->above = above;
  if (window.shift > 0) {
    search->window = window.Bin(found.bin);
    return;
  }
  const Key key = window.base + found.bin;
  const std::uint64_t ties = k - above;
  // All of them are no ties to choose from.
  search->cut = ties == found.inside ? Cut{key, 0} : Cut{key + 1, ties};
  search->settled = 1;
}

// After the first pass, where the k-th key is known to be only in all probability. The last block
// calls it.
__device__ void NarrowFirst(Search* search, const List& list, std::uint64_t k) {
  const Bounds bounds = search->bounds;
  const std::uint64_t larger = __ldcg(&search->larger);
  const std::uint64_t tied = __ldcg(&search->tied);
  const std::uint64_t listed = __ldcg(&search->listed);
  const std::uint64_t all = list.indices != nullptr ? listed : larger + listed;
  const bool fits = listed <= list.room;
  const bool first = threadIdx.x == 0;
  if (larger < k && k <= all) {
    if (first) search->in_list = fits;
    Narrow(search, Window::Of(bounds.least, bounds.end - bounds.least), larger, 0, k);
  } else if (k <= larger) {
    if (!first) return;
    search->in_list = fits && list.indices != nullptr;
    search->window = Window::Of(bounds.end, kKeys - bounds.end);
  } else if (k <= all + tied) {
    if (!first) return;
    const std::uint64_t ties = k - all;
    search->cut = ties == tied ? Cut{bounds.least - 1, 0} : Cut{bounds.least, ties};
    search->settled = 1;
  } else if (first) {
    search->window = Window::Of(0, bounds.least - bounds.tied);
    search->above = all + tied;
  }
}

template <bool kPacked>
__device__ void StoreTile(const SelectTile& tile, float* y, std::size_t left) {
  if (kPacked && left >= kSelectTile) {
#pragma unroll
    for (int a = 0; a < kEach; a += kAccess) {
      Pack<float, kAccess> pack;
      for (int c = 0; c < kAccess; ++c) pack.at[c] = tile.at[a + c];
      StorePack(pack, y + PlaceInTile(a));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if ((tile.valid >> i & 1U) != 0) y[PlaceInTile(i)] = tile.at[i];
}

template <bool kFeedback, bool kPacked>
__device__ SelectTile TakeTile(const float* x, float* residual, std::size_t left) {
  SelectTile tile = LoadTile<kPacked>(x, left);
  if constexpr (kFeedback) {
    const SelectTile before = LoadTile<kPacked>(residual, left);
#pragma unroll
    for (int i = 0; i < kEach; ++i) tile.at[i] = AddSaturating(before.at[i], tile.at[i]);
    StoreTile<kPacked>(tile, residual, left);
  }
  return tile;
}

// Gives a tile its place on the list. Whole blocks call it, with the elements of a warp; returns
// where those of the warp begin.
__device__ std::uint64_t TakePlace(std::uint32_t warp_count, std::size_t t, Search* search,
                                   const List& list) {
  constexpr unsigned kWarps = kThreads / kWarp;
  __shared__ std::uint32_t warps[kWarps];
  __shared__ std::uint64_t place;
  if (Lane() == 0) warps[WarpOfBlock()] = warp_count;
  __syncthreads();
  std::uint32_t before = 0;
  std::uint32_t total = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < WarpOfBlock()) before += warps[w];
    total += warps[w];
  }
  if (threadIdx.x == 0) {
    place = total > 0 ? atomicAdd(AsWide(&search->listed), Wide{total}) : 0;
    list.tiles[t] = {static_cast<std::uint32_t>(place), total};
  }
  __syncthreads();
  return place + before;
}

// The masks of a tile: what is listed, and what is larger than all that is.
struct Masks {
  std::uint32_t listed;
  std::uint32_t larger;
};
// Floats compare as their keys do but for NaNs, which compare as larger here, and which no bound
// is.
template <bool kBanded>
__device__ Masks MasksOf(const SelectTile& tile, const Bounds& bounds) {
  const float least = __uint_as_float(bounds.least);
  const float end = __uint_as_float(bounds.end);
  const std::uint32_t from_least = tile.Mask([&](float v) { return !(fabsf(v) < least); });
  if constexpr (!kBanded) return {from_least, 0};
  const std::uint32_t from_end = tile.Mask([&](float v) { return !(fabsf(v) < end); });
  return {from_least & ~from_end, from_end};
}

// The first pass: p = residual + x, the list, and the bins of its keys.
template <bool kFeedback, bool kBanded, bool kPacked>
__global__ void __launch_bounds__(kThreads, kFeedback ? 4 : 6)
    CollectKernel(Guard guard, const float* x, float* residual, std::size_t n, std::uint64_t k,
                  List list, Search* search) {
  if (guard.Closed()) return;
  __shared__ std::uint32_t bins[kBins];
  ClearBins(bins);
  BinCounter counter(bins);
  const Bounds bounds = search->bounds;
  const Window window = Window::Of(bounds.least, bounds.end - bounds.least);
  const float tie = __uint_as_float(bounds.least - bounds.tied);
  const float* const source = kFeedback ? residual : x;
  std::uint32_t larger = 0;
  std::uint32_t tied = 0;
  for (std::size_t t = blockIdx.x; t * kSelectTile < n; t += gridDim.x) {
    const std::size_t begin = t * kSelectTile;
    const SelectTile tile = TakeTile<kFeedback, kPacked>(x + begin, residual + begin, n - begin);
    const Masks masks = MasksOf<kBanded>(tile, bounds);
    larger += __popc(masks.larger);
    if (bounds.tied != 0) tied += __popc(tile.Mask([&](float v) { return fabsf(v) == tie; }));
    const WarpPlace place(masks.listed);
    const std::uint64_t first = TakePlace(place.total(), t, search, list);
    ForTile(masks.listed, [&](unsigned i, unsigned in_tile) {
      const float value = source[begin + in_tile];
      const Key key = KeyOf(value);
      if (window.Has(key)) {
        counter.Add(window.BinOf(key));
      } else {
        ++larger;
      }
      const std::uint64_t at = first + place.Before(i);
      if (at >= list.room) return;
      list.values[at] = value;
      if (!kBanded) list.indices[at] = static_cast<std::uint32_t>(begin + in_tile);
    });
  }
  counter.Flush();
  AddBins(bins, search->bins[0]);
  AddCounts(larger, &search->larger);
  AddCounts(tied, &search->tied);
  if (LastToArrive(&search->arrived[0])) NarrowFirst(search, list, k);
}

// Another pass, if the cut does not stand yet: the bins of the window's keys.
template <bool kPacked>
__global__ void RefineKernel(Guard guard, const float* x, std::size_t n, std::uint64_t k, List list,
                             unsigned pass, Search* search) {
  if (guard.Closed() || search->settled != 0) return;
  __shared__ std::uint32_t bins[kBins];
  ClearBins(bins);
  BinCounter counter(bins);
  const Window window = search->window;
  const std::uint64_t above = search->above;
  const auto count = [&](float value) {
    const Key key = KeyOf(value);
    if (window.Has(key)) counter.Add(window.BinOf(key));
  };
  if (search->in_list != 0) {
    const std::size_t listed = search->listed;
    for (std::size_t e = FirstItem(); e < listed; e += ItemStride()) count(list.values[e]);
  } else {
    ForPacks<kPacked>(n, [&]<int kWidth>(std::size_t i) {
      const auto values = LoadPack<kWidth>(x + i);
      for (int j = 0; j < kWidth; ++j) count(values.at[j]);
    });
  }
  counter.Flush();
  AddBins(bins, search->bins[pass]);
  if (LastToArrive(&search->arrived[pass])) Narrow(search, window, above, pass, k);
}

template <bool kFeedback>
auto CollectFor(bool banded, bool packed) {
  if (banded)
    return packed ? CollectKernel<kFeedback, true, true> : CollectKernel<kFeedback, true, false>;
  return packed ? CollectKernel<kFeedback, false, true> : CollectKernel<kFeedback, false, false>;
}

}  // namespace

void FindCut(const Backend& backend, const SearchPlan& plan) {
  const auto [x, residual, n, k, ranks, list, search, words, word_count] = plan;
  const bool feedback = residual != nullptr;
  const auto processors = static_cast<unsigned>(backend.cuda->multiprocessors());
  const bool packed = Aligned(x, residual);
  Launch(backend, "bounds of the k-th", std::min(BlocksFor(backend, word_count, 8192), processors),
         kBoundsThreads, BoundsKernel, x, residual, n, ranks, search, words, word_count);
  Launch(backend, "listing the largest",
         std::min(BlocksFor(backend, n, kSelectTile), (feedback ? 4 : 6) * processors), kThreads,
         feedback ? CollectFor<true>(list.indices == nullptr, packed)
                  : CollectFor<false>(list.indices == nullptr, packed),
         x, residual, n, k, list, search);
  const float* const source = feedback ? residual : x;
  for (unsigned pass = 1; pass < kPasses; ++pass)
    Launch(backend, "narrowing to the k-th",
           std::min(BlocksFor(backend, n, kSelectTile), 4 * processors), kThreads,
           Aligned(source) ? RefineKernel<true> : RefineKernel<false>, source, n, k, list, pass,
           search);
}

}  // namespace slimgrad::kernels::cuda
