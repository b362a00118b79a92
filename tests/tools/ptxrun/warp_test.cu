// Operations of a warp together: votes, matches, shuffles, reductions, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstddef>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace cg = cooperative_groups;

namespace slimgrad {
namespace {

constexpr unsigned kAll = ~0U;
constexpr unsigned kThreads = 64;
constexpr std::size_t kCount = 128;

// One result an element, of a kernel that writes result[i] from values[i] and its neighbours.
template <class T>
std::vector<T> Each(void (*kernel)(const T*, T*), const std::vector<T>& values) {
  const DeviceArray<T> input(values);
  const DeviceArray<T> result(values.size());
  RunKernel(kernel, BlocksFor(values.size(), kThreads), kThreads, input.data(), result.data());
  return result.Get();
}

// The expected: `function` has the values of the group of i, and the place of i in it.
template <std::size_t kGroup, class T, class Function>
std::vector<T> EachOnHost(const std::vector<T>& values, Function function) {
  std::vector<T> results;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i / kGroup * kGroup);
    results.push_back(function(std::vector<T>(first, first + kGroup), i % kGroup));
  }
  return results;
}

using Warp = std::vector<unsigned>;

// A bit for each lane of which a condition holds.
template <class Condition>
unsigned MaskOf(const Warp& warp, Condition holds) {
  unsigned mask = 0;
  for (std::size_t lane = 0; lane < warp.size(); ++lane)
    mask |= static_cast<unsigned>(holds(warp[lane])) << lane;
  return mask;
}

__global__ void MatchAny(const unsigned* x, unsigned* result) {
  const int i = GlobalThread();
  result[i] = __match_any_sync(kAll, x[i] & 7);
}

TEST(Warp, MatchAny) {
  const auto x = RandomWords(kCount, 1);
  EXPECT_EQ(Each(MatchAny, x), EachOnHost<32>(x, [](const Warp& warp, std::size_t lane) {
              return MaskOf(warp, [&](unsigned y) { return (y & 7) == (warp[lane] & 7); });
            }));
}

__global__ void MatchAll(const unsigned* x, unsigned* result) {
  const int i = GlobalThread();
  int matched = 0;
  const unsigned mask = __match_all_sync(kAll, x[i], &matched);
  result[i] = matched != 0 ? mask : 17;
}

TEST(Warp, MatchAll) {
  std::vector<unsigned> x(kCount, 5);
  x.back() = 6;
  const auto results = Each(MatchAll, x);
  EXPECT_EQ(results.front(), kAll);
  EXPECT_EQ(results.back(), 17);
}

__global__ void ActiveInBranch(const unsigned* x, unsigned* result) {
  const int i = GlobalThread();
  result[i] = 0;
  if ((x[i] & 1) != 0) result[i] = __activemask();
}

TEST(Warp, ActiveMask) {
  const auto x = RandomWords(kCount, 2);
  EXPECT_EQ(Each(ActiveInBranch, x), EachOnHost<32>(x, [](const Warp& warp, std::size_t lane) {
              return (warp[lane] & 1) != 0 ? MaskOf(warp, [](unsigned y) { return y & 1; }) : 0;
            }));
}

__global__ void Votes(const unsigned* x, unsigned* result) {
  const int i = GlobalThread();
  const unsigned ballot = __ballot_sync(kAll, x[i] > 1U << 31);
  const bool any = __any_sync(kAll, x[i] > 4000000000U) != 0;
  const bool all = __all_sync(kAll, x[i] > 100000000U) != 0;
  result[i] = ballot ^ (any ? 1U : 0U) ^ (all ? 2U : 0U) ^ __fns(ballot, 0, 2);
}

unsigned SecondSetBit(unsigned mask) {
  mask &= mask - 1;
  return mask != 0 ? static_cast<unsigned>(std::countr_zero(mask)) : kAll;
}

TEST(Warp, Votes) {
  const auto x = RandomWords(kCount, 3);
  EXPECT_EQ(Each(Votes, x), EachOnHost<32>(x, [](const Warp& warp, std::size_t) {
              const unsigned ballot = MaskOf(warp, [](unsigned y) { return y > 1U << 31; });
              const unsigned high = MaskOf(warp, [](unsigned y) { return y > 4000000000U; });
              const unsigned low = MaskOf(warp, [](unsigned y) { return y <= 100000000U; });
              return ballot ^ (high != 0 ? 1U : 0U) ^ (low == 0 ? 2U : 0U) ^ SecondSetBit(ballot);
            }));
}

__global__ void Shuffles(const unsigned* x, unsigned* result) {
  const int i = GlobalThread();
  const unsigned lane = threadIdx.x % 32;
  result[i] = __shfl_up_sync(kAll, x[i], 3) ^ __shfl_down_sync(kAll, x[i], 5, 16) ^
              __shfl_sync(kAll, x[i], static_cast<int>(lane ^ 9), 8) ^
              __shfl_xor_sync(kAll, x[i] >> 1, 21);
}

TEST(Warp, Shuffles) {
  const auto x = RandomWords(kCount, 4);
  EXPECT_EQ(Each(Shuffles, x), EachOnHost<32>(x, [](const Warp& warp, std::size_t lane) {
              const unsigned up = warp[lane < 3 ? lane : lane - 3];
              const unsigned down = warp[lane % 16 + 5 < 16 ? lane + 5 : lane];
              const unsigned within_eight = warp[lane / 8 * 8 + (lane ^ 9) % 8];
              return up ^ down ^ within_eight ^ warp[lane ^ 21] >> 1;
            }));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void Reductions(const unsigned* x, unsigned* result) {
  const int i = GlobalThread();
  const unsigned half = threadIdx.x % 32 < 16 ? 0xffffU : 0xffff0000U;
  result[i] = __reduce_add_sync(kAll, x[i]) ^ __reduce_max_sync(half, x[i]) ^
              static_cast<unsigned>(__reduce_min_sync(kAll, static_cast<int>(x[i]))) ^
              __reduce_and_sync(half, x[i] | 15) ^ __reduce_or_sync(half, x[i] & 15) ^
              __reduce_xor_sync(kAll, x[i]);
}
#endif

template <class Function>
unsigned Fold(const Warp& warp, std::size_t first, std::size_t count, Function function) {
  unsigned result = warp[first];
  for (std::size_t lane = first + 1; lane < first + count; ++lane)
    result = function(result, warp[lane]);
  return result;
}

TEST(Warp, Reductions) {
  const auto x = RandomWords(kCount, 5);
  EXPECT_EQ(Each(Reductions, x), EachOnHost<32>(x, [](const Warp& warp, std::size_t lane) {
              const std::size_t half = lane / 16 * 16;
              const auto most = [](unsigned a, unsigned b) { return std::max(a, b); };
              const auto least = [](unsigned a, unsigned b) {
                return static_cast<unsigned>(std::min(static_cast<int>(a), static_cast<int>(b)));
              };
              return Fold(warp, 0, 32, std::plus<>()) ^ Fold(warp, half, 16, most) ^
                     Fold(warp, 0, 32, least) ^ (Fold(warp, half, 16, std::bit_and<>()) | 15) ^
                     (Fold(warp, half, 16, std::bit_or<>()) & 15) ^
                     Fold(warp, 0, 32, std::bit_xor<>());
            }));
}

__global__ void Tiles(const int* x, int* result) {
  const int i = GlobalThread();
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int sum = cg::reduce(tile, x[i], cg::plus<int>());
  const int most = cg::reduce(tile, x[i], cg::greater<int>());
  const int before = cg::inclusive_scan(tile, x[i]);
  const int other = tile.shfl_xor(x[i], 5);
  result[i] = sum + 7 * most + 31 * before + 101 * other + 1009 * tile.any(x[i] > 97) +
              static_cast<int>(tile.ballot((x[i] & 1) != 0));
}

TEST(CooperativeGroups, Tiles) {
  const auto x = RandomInts(kCount, 100, 6);
  const auto expected = EachOnHost<16>(x, [](const std::vector<int>& tile, std::size_t place) {
    int sum = 0, before = 0, ballot = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
      sum += tile[i];
      if (i <= place) before += tile[i];
      ballot |= (tile[i] & 1) << i;
    }
    const int most = *std::max_element(tile.begin(), tile.end());
    return sum + 7 * most + 31 * before + 101 * tile[place ^ 5] + 1009 * (most > 97 ? 1 : 0) +
           ballot;
  });
  EXPECT_EQ(Each(Tiles, x), expected);
}

__global__ void Coalesced(const int* x, int* result) {
  const int i = GlobalThread();
  result[i] = 0;
  if ((x[i] & 1) != 0) {
    const auto active = cg::coalesced_threads();
    result[i] = static_cast<int>(active.size() * 100 + active.thread_rank());
  }
}

TEST(CooperativeGroups, CoalescedThreads) {
  const auto x = RandomInts(kCount, 100, 7);
  EXPECT_EQ(Each(Coalesced, x), EachOnHost<32>(x, [](const std::vector<int>& warp, std::size_t at) {
              if ((warp[at] & 1) == 0) return 0;
              int active = 0, rank = 0;
              for (std::size_t lane = 0; lane < warp.size(); ++lane) {
                active += warp[lane] & 1;
                if (lane < at) rank += warp[lane] & 1;
              }
              return active * 100 + rank;
            }));
}

__global__ void Labelled(const int* x, int* result) {
  const int i = GlobalThread();
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto alike = cg::labeled_partition(warp, x[i] % 3);
  result[i] = cg::reduce(alike, x[i], cg::plus<int>());
}

TEST(CooperativeGroups, LabelledPartition) {
  const auto x = RandomInts(kCount, 100, 8);
  EXPECT_EQ(Each(Labelled, x), EachOnHost<32>(x, [](const std::vector<int>& warp, std::size_t at) {
              int sum = 0;
              for (const int y : warp) sum += y % 3 == warp[at] % 3 ? y : 0;
              return sum;
            }));
}

}  // namespace
}  // namespace slimgrad
