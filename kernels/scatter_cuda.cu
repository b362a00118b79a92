// The sparse additions of select.h. Indices come from other ranks: a first kernel looks at all of
// them, and the second one writes only if each block of the first was content.
//
// Bytes: ScatterAdd 8 for each entry, 4 more to look at its index, and a sector of 32 of y to read
// and to write, where entries are far apart; Scatter 4 for each element of y and 12 for each entry.
// More than must be moved are the 4, which the second kernel finds in the L2 cache.
#include "kernels/cuda_block.cuh"
#include "kernels/cuda_pack.cuh"
#include "kernels/select.h"

namespace slimgrad::kernels::cuda {
namespace {

// Entries, as they came.
struct Entries {
  const std::uint32_t* indices;
  const float* values;
  std::size_t count;
};

// What the blocks of the first kernel found: not 0 where an index is wrong.
struct Verdicts {
  std::uint32_t* wrong;
  unsigned count;

  // Whole blocks call it.
  __device__ bool Any() const {
    std::uint32_t any = 0;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) any |= wrong[i];
    return __syncthreads_or(static_cast<int>(any)) != 0;
  }
};

constexpr unsigned kMostVerdicts = 1024;

__global__ void CheckKernel(Guard guard, Entries entries, std::size_t size,
                            std::uint32_t* verdicts) {
  if (guard.Closed()) return;
  bool wrong = false;
  for (std::size_t j = FirstItem(); j < entries.count; j += ItemStride()) {
    const std::uint32_t index = entries.indices[j];
    wrong |= j + 1 < entries.count ? index >= entries.indices[j + 1] : index >= size;
  }
  const bool any = __syncthreads_or(static_cast<int>(wrong)) != 0;
  if (threadIdx.x == 0) verdicts[blockIdx.x] = any ? 1 : 0;
}

// Whether nothing is to be written, which is counted once.
__device__ bool Refused(const Verdicts& verdicts, std::uint64_t* faults) {
  const bool refused = verdicts.Any();
  if (refused && FirstItem() == 0) atomicAdd(AsWide(faults), Wide{1});
  return refused;
}

__global__ void AddKernel(Guard guard, Entries entries, float weight, Verdicts verdicts,
                          std::uint64_t* faults, float* y) {
  if (guard.Closed() || Refused(verdicts, faults)) return;
  for (std::size_t j = FirstItem(); j < entries.count; j += ItemStride()) {
    float* const target = y + entries.indices[j];
    *target = *target + weight * entries.values[j];
  }
}

// Elements of y that a block prepares in shared memory, so that each is written once.
constexpr unsigned kTile = 4096;

// The first entry whose index is at least `from`.
__device__ std::size_t FirstEntry(const Entries& entries, std::size_t from) {
  std::size_t first = 0;
  for (std::size_t count = entries.count; count > 0;) {
    const std::size_t half = count / 2;
    if (entries.indices[first + half] < from) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

// Writes the tile to y and clears it; each thread the elements that it clears.
template <bool kPacked>
__device__ void Flush(float* tile, std::size_t left, float* y) {
  constexpr int kWidth = kPacked ? kFloats : 1;
  if (left >= kTile) {
    for (unsigned i = threadIdx.x * kWidth; i < kTile; i += kThreads * kWidth) {
      StorePack(LoadPack<kWidth>(tile + i), y + i);
      StorePack(Pack<float, kWidth>{}, tile + i);
    }
  } else {
    for (unsigned i = threadIdx.x; i < left; i += kThreads) {
      y[i] = tile[i];
      tile[i] = 0.0F;
    }
  }
}

// A block takes `tiles` tiles one behind the other, and so finds its entries by one search.
template <bool kPacked>
__global__ void ScatterKernel(Guard guard, Entries entries, float weight, Verdicts verdicts,
                              std::uint64_t* faults, float* y, std::size_t size,
                              std::size_t tiles) {
  if (guard.Closed() || Refused(verdicts, faults)) return;
  __shared__ alignas(16) float tile[kTile];
  for (unsigned i = threadIdx.x; i < kTile; i += kThreads) tile[i] = 0.0F;
  __syncthreads();
  std::size_t begin = blockIdx.x * tiles * kTile;
  const std::size_t end = min(size, begin + tiles * kTile);
  std::size_t first = begin < end ? FirstEntry(entries, begin) : 0;
  for (; begin < end; begin += kTile) {
    const std::size_t tile_end = min(end, begin + kTile);
    for (int taken = kThreads; taken == kThreads; first += taken) {
      const std::size_t j = first + threadIdx.x;
      const std::size_t index = j < entries.count ? entries.indices[j] : size;
      if (index < tile_end) tile[index - begin] = 0.0F + weight * entries.values[j];
      taken = __syncthreads_count(static_cast<int>(index < tile_end));
    }
    Flush<kPacked>(tile, end - begin, y + begin);
    __syncthreads();
  }
}

Verdicts CheckEntries(const Backend& backend, const Entries& entries, std::size_t size) {
  if (entries.count == 0) return {nullptr, 0};
  const unsigned blocks =
      std::min(BlocksFor(backend, entries.count, std::size_t{4} * kThreads), kMostVerdicts);
  const Verdicts verdicts = {reinterpret_cast<std::uint32_t*>(backend.cuda->workspace().data()),
                             blocks};
  Launch(backend, "checking indices", blocks, kThreads, CheckKernel, entries, size, verdicts.wrong);
  return verdicts;
}

}  // namespace

Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y) {
  if (indices.empty()) return {};
  const Entries entries = {indices.data(), values.data(), indices.size()};
  const Verdicts verdicts = CheckEntries(backend, entries, y.size());
  Launch(backend, "adding at indices", BlocksFor(backend, entries.count, kThreads), kThreads,
         AddKernel, entries, weight, verdicts, backend.cuda->faults(), y.data());
  return {};
}

Status Scatter(const Backend& backend, std::span<const std::uint32_t> indices, In values,
               float weight, Out y) {
  if (y.empty() && indices.empty()) return {};
  const Entries entries = {indices.data(), values.data(), indices.size()};
  const Verdicts verdicts = CheckEntries(backend, entries, y.size());
  const unsigned blocks = std::min(BlocksFor(backend, y.size(), kTile),
                                   8 * static_cast<unsigned>(backend.cuda->multiprocessors()));
  const std::size_t tiles = BlockCount(y.size(), std::size_t{blocks} * kTile);
  Launch(backend, "writing at indices", blocks, kThreads,
         Aligned(y.data()) ? ScatterKernel<true> : ScatterKernel<false>, entries, weight, verdicts,
         backend.cuda->faults(), y.data(), y.size(), tiles);
  return {};
}

}  // namespace slimgrad::kernels::cuda
