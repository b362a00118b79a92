// Signs with error feedback, a bit an element, and the majority of several ranks' signs: ballots
// and reductions of a block as compressors use them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {
namespace {

// A block of threads packs kThreads * kEach elements of x = gradient + residual: their signs, their
// mean magnitude, and what these leave over as the new residual.
template <int kThreads, int kEach>
__global__ void PackSigns(const float* gradient, float* residual, int count, unsigned* bits,
                          float* scales) {
  using Reduce = cub::BlockReduce<float, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float scale;
  const int first = static_cast<int>(blockIdx.x) * kThreads * kEach + static_cast<int>(threadIdx.x);
  float x[kEach];
  float magnitude = 0;
  for (int k = 0; k < kEach; ++k) {
    const int i = first + k * kThreads;
    x[k] = i < count ? gradient[i] + residual[i] : 0;
    magnitude += fabsf(x[k]);
  }
  const float total = Reduce(storage).Sum(magnitude);
  if (threadIdx.x == 0) {
    const int here = min(count - first, kThreads * kEach);
    scale = total / static_cast<float>(here);
    scales[blockIdx.x] = scale;
  }
  __syncthreads();
  for (int k = 0; k < kEach; ++k) {
    const int i = first + k * kThreads;
    const bool positive = i < count && !signbit(x[k]);
    const unsigned word = __ballot_sync(~0U, positive);
    if (i < count && threadIdx.x % 32 == 0) bits[i / 32] = word;
    if (i < count) residual[i] = x[k] - (positive ? scale : -scale);
  }
}

template <int kThreads, int kEach>
void ExpectPacks(int count, unsigned seed) {
  const auto size = static_cast<std::size_t>(count);
  constexpr std::size_t kBlock = kThreads * kEach;
  const auto gradient = NormalFloats(size, seed);
  const auto residual = NormalFloats(size, seed + 1);
  const unsigned blocks = BlocksFor(size, kBlock);
  const DeviceArray<float> g(gradient), r(residual), scales(blocks);
  const DeviceArray<unsigned> bits((size + 31) / 32);
  RunKernel(PackSigns<kThreads, kEach>, blocks, kThreads, g.data(), r.data(), count, bits.data(),
            scales.data());
  const auto got_scales = scales.Get();
  const auto got_bits = bits.Get();
  const auto got_residual = r.Get();
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t end = std::min(size, (block + 1) * kBlock);
    double sum = 0;
    for (std::size_t i = block * kBlock; i < end; ++i) {
      const float x = gradient[i] + residual[i];
      const bool positive = !std::signbit(x);
      const float scale = got_scales[block];
      sum += std::fabs(x);
      ASSERT_EQ((got_bits[i / 32] >> (i % 32) & 1) != 0, positive) << i;
      ASSERT_EQ(got_residual[i], x - (positive ? scale : -scale)) << i;
    }
    EXPECT_NEAR(got_scales[block], sum / static_cast<double>(end - block * kBlock), 1e-5);
  }
  if (size % 32 != 0) EXPECT_EQ(got_bits.back() >> (size % 32), 0) << "beyond the end";
}

TEST(Signs, PackWithErrorFeedback) {
  ExpectPacks<128, 4>(5000, 1);
  ExpectPacks<256, 4>(20001, 3);
  ExpectPacks<96, 3>(1000, 5);
}

constexpr int kCounterBits = 4;

// Counts 32 bits at once: bit b of counter[k] is bit k of the number of ranks whose bit b is set.
__global__ void Majority(const unsigned* const* words, int ranks, int count, unsigned* result) {
  const int i = GlobalThread();
  if (i >= count) return;
  unsigned counter[kCounterBits] = {};
  for (int rank = 0; rank < ranks; ++rank) {
    unsigned carry = words[rank][i];
    for (unsigned& digit : counter) {
      const unsigned next = digit & carry;
      digit ^= carry;
      carry = next;
    }
  }
  unsigned majority = 0;
  for (int bit = 0; bit < 32; ++bit) {
    int votes = 0;
    for (int k = 0; k < kCounterBits; ++k) votes += static_cast<int>(counter[k] >> bit & 1) << k;
    majority |= static_cast<unsigned>(2 * votes > ranks) << bit;
  }
  result[i] = majority;
}

TEST(Signs, MajorityOfRanks) {
  constexpr int kRanks = 5;
  constexpr std::size_t kWords = 300;
  std::vector<std::vector<unsigned>> words;
  std::vector<std::unique_ptr<DeviceArray<unsigned>>> arrays;
  std::vector<unsigned*> pointers;
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    words.push_back(RandomWords(kWords, 10 + rank));
    arrays.push_back(std::make_unique<DeviceArray<unsigned>>(words.back()));
    pointers.push_back(arrays.back()->data());
  }
  const DeviceArray<unsigned*> table(pointers);
  const DeviceArray<unsigned> result(kWords);
  RunKernel(Majority, BlocksFor(kWords, 128), 128, table.data(), kRanks, static_cast<int>(kWords),
            result.data());
  const auto got = result.Get();
  for (std::size_t i = 0; i < kWords; ++i) {
    for (int bit = 0; bit < 32; ++bit) {
      int votes = 0;
      for (const auto& of_rank : words) votes += static_cast<int>(of_rank[i] >> bit & 1);
      ASSERT_EQ(got[i] >> bit & 1, votes > kRanks / 2 ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace slimgrad
