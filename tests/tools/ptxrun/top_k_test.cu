// Exact top-k by magnitude: a radix selection whose last block closes each pass, and a compaction
// in order whose blocks look back at those before. What both need of memory order and of blocks
// that wait is what a stand-in gets wrong first.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;
constexpr int kDigits = 256;

// Magnitudes in the order of unsigned integers.
__host__ __device__ unsigned KeyOf(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x) & 0x7fffffff;
#else
  unsigned bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffff;
#endif
}

// The k-th largest key, as far as it is known.
struct Selection {
  unsigned prefix;  // its digits so far
  unsigned mask;    // where they stand
  unsigned left;    // how many of those with this prefix are among the k
  unsigned blocks_done;
  unsigned histogram[kDigits];
};

__device__ void CountDigits(const float* x, int count, int shift, const Selection& selection,
                            unsigned* histogram) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = GlobalThread(); i < count; i += step) {
    const unsigned key = KeyOf(x[i]);
    if ((key & selection.mask) == selection.prefix)
      atomicAdd(&histogram[key >> shift & (kDigits - 1)], 1U);
  }
}

// Whether this block is the last to come here.
__device__ bool IsLastBlock(unsigned* blocks_done) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(blocks_done, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

__global__ void SelectDigit(const float* x, int count, int shift, Selection* selection) {
  using Scan = cub::BlockScan<unsigned, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ unsigned histogram[kDigits];
  histogram[threadIdx.x] = 0;
  __syncthreads();
  CountDigits(x, count, shift, *selection, histogram);
  __syncthreads();
  atomicAdd(&selection->histogram[threadIdx.x], histogram[threadIdx.x]);
  if (!IsLastBlock(&selection->blocks_done)) return;
  const unsigned digit = kDigits - 1 - threadIdx.x;  // from the largest down
  const unsigned here = atomicExch(&selection->histogram[digit], 0U);
  unsigned above = 0;
  Scan(storage).ExclusiveSum(here, above);
  const unsigned left = selection->left;
  __syncthreads();
  if (above >= left || above + here < left) return;
  selection->prefix |= digit << shift;
  selection->mask |= static_cast<unsigned>(kDigits - 1) << shift;
  selection->left = left - above;
}

// What a block tells those after it: a state in the top bits, and how many of its elements are
// above the threshold (low 31 bits) and on it (next 31 bits).
using Status = unsigned long long;
constexpr Status kOwnCounts = Status{1} << 62;
constexpr Status kCountsUpToHere = Status{2} << 62;
constexpr Status kCounts = kOwnCounts - 1;

// The counts of all blocks before this one; publishes those up to and with it.
__device__ Status LookBack(Status* statuses, int block, Status own) {
  using Reference = cuda::atomic_ref<Status, cuda::thread_scope_device>;
  const Reference mine(statuses[block]);
  if (block > 0) mine.store(own | kOwnCounts, cuda::memory_order_release);
  Status before = 0;
  for (int other = block - 1; other >= 0;) {
    const Status status = Reference(statuses[other]).load(cuda::memory_order_acquire);
    if (status <= kCounts) {  // nothing yet
      __nanosleep(20);
      continue;
    }
    before += status & kCounts;
    if ((status & kCountsUpToHere) != 0) break;
    --other;
  }
  mine.store((before + own) | kCountsUpToHere, cuda::memory_order_release);
  return before;
}

// Indices of the k largest in ascending order; of equal ones the first.
__global__ void Compact(const float* x, int count, const Selection* selection, Status* statuses,
                        unsigned* ticket, int* indices) {
  using Scan = cub::BlockScan<Status, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ int block;
  __shared__ Status before;
  // Blocks start in any order: a ticket says which one this is.
  if (threadIdx.x == 0) block = static_cast<int>(atomicAdd(ticket, 1U));
  __syncthreads();
  const int first = (block * kThreads + static_cast<int>(threadIdx.x)) * kEach;
  Status kinds[kEach];
  Status counts = 0;
  for (int k = 0; k < kEach; ++k) {
    const unsigned key = first + k < count ? KeyOf(x[first + k]) : 0;
    const bool inside = first + k < count;
    kinds[k] = !inside || key < selection->prefix ? 0
               : key > selection->prefix          ? 1
                                                  : Status{1} << 31;
    counts += kinds[k];
  }
  Status place = 0, all = 0;
  Scan(storage).ExclusiveSum(counts, place, all);
  if (threadIdx.x == 0) before = LookBack(statuses, block, all);
  __syncthreads();
  place += before;
  for (int k = 0; k < kEach; ++k) {
    const auto above = static_cast<unsigned>(place & 0x7fffffff);
    const auto equal = static_cast<unsigned>(place >> 31);
    const bool taken = kinds[k] == 1 || (kinds[k] > 1 && equal < selection->left);
    if (taken) indices[above + min(equal, selection->left)] = first + k;
    place += kinds[k];
  }
}

std::vector<int> TopKOnHost(const std::vector<float>& x, std::size_t k) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return KeyOf(x[static_cast<std::size_t>(a)]) > KeyOf(x[static_cast<std::size_t>(b)]);
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

void ExpectTopK(const std::vector<float>& values, unsigned k) {
  const auto count = static_cast<int>(values.size());
  const DeviceArray<float> x(values);
  DeviceArray<Selection> selection(1);
  Selection start = {};
  start.left = k;
  selection.Set({start});
  const unsigned blocks = std::min(7U, BlocksFor(values.size(), kThreads));
  for (int shift = 24; shift >= 0; shift -= 8)
    RunKernel(SelectDigit, blocks, kThreads, x.data(), count, shift, selection.data());

  const unsigned tiles = BlocksFor(values.size(), kThreads * kEach);
  DeviceArray<Status> statuses(tiles);
  statuses.Zero();
  DeviceArray<unsigned> ticket(1);
  ticket.Zero();
  const DeviceArray<int> indices(k);
  RunKernel(Compact, tiles, kThreads, x.data(), count, selection.data(), statuses.data(),
            ticket.data(), indices.data());
  EXPECT_EQ(indices.Get(), TopKOnHost(values, k));
}

TEST(TopK, FewAllAndOne) {
  ExpectTopK(NormalFloats(10000, 1), 100);
  ExpectTopK(NormalFloats(4099, 2), 4099);
  ExpectTopK(NormalFloats(33, 3), 1);
}

TEST(TopK, EqualMagnitudesAndSpecialValues) {
  const auto ints = RandomInts(9000, 7, 4);
  std::vector<float> values;
  for (const int value : ints) values.push_back(static_cast<float>(value - 3));
  ExpectTopK(values, 2500);
  values[5] = INFINITY;
  values[6] = -INFINITY;
  values[7] = -0.0F;
  values[8] = 1e-42F;
  ExpectTopK(values, 4000);
}

// In any order: each warp takes room for its lanes at once.
__global__ void CompactByWarps(const float* x, int count, float threshold, unsigned* taken,
                               int* indices) {
  const int i = GlobalThread();
  if (i >= count || fabsf(x[i]) <= threshold) return;
  const unsigned active = __activemask();
  const unsigned lane = threadIdx.x % 32;
  const auto leader = static_cast<unsigned>(__ffs(static_cast<int>(active)) - 1);
  unsigned first = 0;
  if (lane == leader) first = atomicAdd(taken, static_cast<unsigned>(__popc(active)));
  first = __shfl_sync(active, first, static_cast<int>(leader));
  indices[first + static_cast<unsigned>(__popc(active & ((1U << lane) - 1)))] = i;
}

TEST(TopK, CompactionByWarpsFindsTheSameSet) {
  const auto values = NormalFloats(5000, 5);
  std::vector<int> expected;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i]) > 1.5F) expected.push_back(static_cast<int>(i));
  }
  const DeviceArray<float> x(values);
  const DeviceArray<int> indices(values.size());
  DeviceArray<unsigned> taken(1);
  taken.Zero();
  RunKernel(CompactByWarps, BlocksFor(values.size(), 128), 128, x.data(),
            static_cast<int>(values.size()), 1.5F, taken.data(), indices.data());
  auto got = indices.Get();
  got.resize(taken.Get()[0]);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace slimgrad
