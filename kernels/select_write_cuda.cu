// Writes what a cut selects, in order, in one pass: pieces count what they select, look back for
// how much the pieces before select, and write.
//
// Bytes an element of the tensor: from the tensor 4 and, for each selected one, 8 (with feedback 4
// more); that is what must be moved. From a list 12 an element of the list, which lies in the L2
// cache, and as much for each selected one.
#include "kernels/cuda_select.cuh"

namespace slimgrad::kernels::cuda {
namespace {

// Tiles whose lists a block takes at a time.
constexpr unsigned kGroup = 16;
constexpr unsigned kWarps = kThreads / kWarp;

struct Counts {
  std::uint64_t above;
  std::uint64_t ties;
};

// The words of the looks back.
struct Words {
  std::uint64_t* next;
  LookBack above;
  LookBack ties;

  __device__ Words(std::uint64_t* words, std::size_t pieces)
      : next(words), above(words + 1), ties(words + 1 + pieces) {}
};

// What the pieces before this one count. Whole blocks call it, once for each ticket.
__device__ Counts CountsBefore(Words& words, std::size_t piece, Counts own, const Cut& cut) {
  __shared__ Counts before;
  if (WarpOfBlock() == 0) {
    const std::uint64_t above = words.above.Before(piece, own.above);
    if (Lane() == 0) before.above = above;
  }
  if (WarpOfBlock() == 1) {
    const std::uint64_t ties = cut.ties > 0 ? words.ties.Before(piece, own.ties) : 0;
    if (Lane() == 0) before.ties = ties;
  }
  __syncthreads();
  return before;
}

// Writes an element that the cut takes, or one of its ties, after so many others.
__device__ void PutOne(const Selected& selected, const Cut& cut, Counts before, bool tie,
                       std::size_t index, float value) {
  if (tie && before.ties >= cut.ties) return;
  selected.Put(before.above + min(before.ties, cut.ties), index, value);
}

// What is before a warp's share of a block's counts, and all; each of them below 2^16 in halves.
__device__ BlockPlace<std::uint32_t> CountsOfWarps(std::uint32_t counts) {
  __shared__ std::uint32_t warps[kWarps];
  if (Lane() == 0) warps[WarpOfBlock()] = counts;
  __syncthreads();
  BlockPlace<std::uint32_t> place = {0, 0};
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < WarpOfBlock()) place.before += warps[w];
    place.total += warps[w];
  }
  return place;
}

__device__ Counts Halves(std::uint32_t counts) { return {counts & 0xFFFFU, counts >> 16}; }

template <bool kPacked>
__device__ void WriteTiles(const float* x, std::size_t n, const Cut& cut, std::uint64_t* words_of,
                           const Selected& selected, std::uint64_t* found) {
  const std::size_t tiles = TilesOf(n);
  Words words(words_of, tiles);
  for (std::size_t t; (t = TakeTicket(words.next)) < tiles;) {
    const std::size_t begin = t * kSelectTile;
    const SelectTile tile = LoadTile<kPacked>(x + begin, n - begin);
    const std::uint32_t above = tile.Mask([&](float v) { return cut.Takes(KeyOf(v)); });
    std::uint32_t ties = 0;
    if (cut.ties > 0) ties = tile.Mask([&](float v) { return cut.Ties(KeyOf(v)); });
    const WarpPlace above_place(above);
    const WarpPlace ties_place(ties);
    const auto place = CountsOfWarps(above_place.total() | ties_place.total() << 16);
    const Counts before = CountsBefore(words, t, Halves(place.total), cut);
    const Counts of_warp = Halves(place.before);
    ForTile(above | ties, [&](unsigned i, unsigned at) {
      PutOne(selected, cut,
             {before.above + of_warp.above + above_place.Before(i),
              before.ties + of_warp.ties + ties_place.Before(i)},
             (ties >> i & 1U) != 0, begin + at, x[begin + at]);
    });
    if (found != nullptr && t == tiles - 1 && threadIdx.x == 0)
      *found = before.above + Halves(place.total).above;
  }
}

// How many of a tile's list the cut takes, and how many are ties. Whole warps call it.
__device__ Counts CountList(const List& list, uint2 tile, const Cut& cut) {
  std::uint32_t above = 0;
  std::uint32_t ties = 0;
  for (std::uint32_t e = Lane(); e < tile.y; e += kWarp) {
    const Key key = KeyOf(list.values[tile.x + e]);
    above += cut.Takes(key);
    ties += cut.Ties(key);
  }
  return {WarpSum(above), WarpSum(ties)};
}

__device__ void WriteList(const List& list, uint2 tile, const Cut& cut, Counts before,
                          const Selected& selected) {
  for (std::uint32_t first = 0; first < tile.y; first += kWarp) {
    const bool there = first + Lane() < tile.y;
    const std::uint32_t e = tile.x + (there ? first + Lane() : 0);
    const float value = list.values[e];
    const bool takes = there && cut.Takes(KeyOf(value));
    const bool tie = there && cut.Ties(KeyOf(value));
    const std::uint32_t above = __ballot_sync(~0U, takes);
    const std::uint32_t ties = __ballot_sync(~0U, tie);
    if (takes || tie) {
      PutOne(
          selected, cut,
          {before.above + __popc(above & LanesBelow()), before.ties + __popc(ties & LanesBelow())},
          tie, list.indices[e], value);
    }
    before.above += __popc(above);
    before.ties += __popc(ties);
  }
}

__device__ void WriteLists(const List& list, std::size_t tiles, const Cut& cut,
                           std::uint64_t* words_of, const Selected& selected) {
  __shared__ Counts counts[kGroup];
  const std::size_t groups = BlockCount(tiles, kGroup);
  Words words(words_of, tiles);
  for (std::size_t g; (g = TakeTicket(words.next)) < groups;) {
    const auto tile_of = [&](unsigned i) {
      const std::size_t t = g * kGroup + i;
      return t < tiles ? list.tiles[t] : uint2{0, 0};
    };
    for (unsigned i = WarpOfBlock(); i < kGroup; i += kWarps) {
      const Counts count = CountList(list, tile_of(i), cut);
      if (Lane() == 0) counts[i] = count;
    }
    __syncthreads();
    Counts total = {0, 0};
    for (unsigned i = 0; i < kGroup; ++i) {
      total.above += counts[i].above;
      total.ties += counts[i].ties;
    }
    Counts before = CountsBefore(words, g, total, cut);
    for (unsigned i = 0; i < kGroup; ++i) {
      if (i % kWarps == WarpOfBlock()) WriteList(list, tile_of(i), cut, before, selected);
      before.above += counts[i].above;
      before.ties += counts[i].ties;
    }
  }
}

template <bool kPacked>
__global__ void WriteSelectedKernel(Guard guard, const float* x, std::size_t n, List list,
                                    const Search* search, std::uint64_t* words, Selected selected) {
  if (guard.Closed()) return;
  const Cut cut = search->cut;
  if (search->in_list != 0 && list.indices != nullptr) {
    WriteLists(list, TilesOf(n), cut, words, selected);
  } else {
    WriteTiles<kPacked>(x, n, cut, words, selected, nullptr);
  }
}

template <bool kPacked>
__global__ void WriteAboveKernel(Guard guard, const float* x, std::size_t n, Key least,
                                 std::uint64_t* words, Selected selected, std::uint64_t* found) {
  if (guard.Closed()) return;
  if (n == 0 && threadIdx.x == 0) *found = 0;
  WriteTiles<kPacked>(x, n, {least, 0}, words, selected, found);
}

unsigned BlocksForTiles(const Backend& backend, std::size_t n) {
  return std::min(BlocksFor(backend, n, kSelectTile),
                  8 * static_cast<unsigned>(backend.cuda->multiprocessors()));
}

}  // namespace

void WriteSelected(const Backend& backend, const float* x, std::size_t n, const List& list,
                   const Search* search, std::uint64_t* words, const Selected& selected) {
  Launch(backend, "writing what is selected", BlocksForTiles(backend, n), kThreads,
         Aligned(x) ? WriteSelectedKernel<true> : WriteSelectedKernel<false>, x, n, list, search,
         words, selected);
}

void WriteAbove(const Backend& backend, const float* x, std::size_t n, Key least,
                std::uint64_t* words, const Selected& selected, std::uint64_t* found) {
  Launch(backend, "writing what is above", BlocksForTiles(backend, n), kThreads,
         Aligned(x) ? WriteAboveKernel<true> : WriteAboveKernel<false>, x, n, least, words,
         selected, found);
}

}  // namespace slimgrad::kernels::cuda
