// Small integers with random rounding, in 8 and 4 bits, on Philox; Philox by curand_kernel.h too;
// and a Walsh-Hadamard transform in shared memory.
#include <curand_kernel.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {
namespace {

struct Words {
  std::uint32_t word[4];
};

__host__ __device__ std::uint32_t HighHalf(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(a) * b >> 32);
}

// Philox4x32-10 (Salmon et al. 2011).
__host__ __device__ Words Philox(Words counter, std::uint32_t key0, std::uint32_t key1) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    const auto& c = counter.word;
    counter = {{HighHalf(kMultiplier1, c[2]) ^ c[1] ^ key0, kMultiplier1 * c[2],
                HighHalf(kMultiplier0, c[0]) ^ c[3] ^ key1, kMultiplier0 * c[0]}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

TEST(Philox, KnownAnswer) {
  const Words words = Philox({{0, 0, 0, 0}}, 0, 0);
  EXPECT_EQ(words.word[0], 0x6627e8d5);
  EXPECT_EQ(words.word[3], 0x9b00dbd8);
}

constexpr std::uint32_t kSeed = 0x89abcdef;

// In [0, 1), of the element's own word.
__host__ __device__ float UniformOf(std::uint32_t element) {
  const Words words = Philox({{element / 4, 0, 0, 0}}, kSeed, 0);
  return static_cast<float>(words.word[element % 4] >> 8) * 0x1p-24F;
}

constexpr int kThreads = 128;
constexpr int kEach = 4;
constexpr int kBlock = kThreads * kEach;

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Codes in -kLargest..kLargest times the block's largest magnitude over kLargest.
template <int kBits>
__global__ void Quantize(const float* x, int count, std::int8_t* codes, float* scales) {
  constexpr int kLargest = (1 << (kBits - 1)) - 1;
  using Reduce = cub::BlockReduce<float, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float largest;
  const int first = GlobalThread() * kEach;
  float mine = 0;
  for (int i = first; i < min(first + kEach, count); ++i) mine = fmaxf(mine, fabsf(x[i]));
  const float of_block = Reduce(storage).Reduce(mine, Larger());
  if (threadIdx.x == 0) {
    largest = of_block;
    scales[blockIdx.x] = of_block / kLargest;
  }
  __syncthreads();
  const float inverse = largest > 0 ? kLargest / largest : 0;
  for (int i = first; i < min(first + kEach, count); ++i) {
    const float shifted = __fadd_rn(__fmul_rn(x[i], inverse), UniformOf(static_cast<unsigned>(i)));
    codes[i] = static_cast<std::int8_t>(max(-kLargest, min(kLargest, __float2int_rd(shifted))));
  }
}

template <int kBits>
void ExpectQuantizes(std::size_t count) {
  constexpr int kLargest = (1 << (kBits - 1)) - 1;
  auto values = NormalFloats(count, 40 + kBits);
  std::fill(
      values.begin() + kBlock,
      values.begin() + std::min<std::ptrdiff_t>(2 * kBlock, static_cast<std::ptrdiff_t>(count)), 0);
  const unsigned blocks = BlocksFor(count, kBlock);
  const DeviceArray<float> x(values), scales(blocks);
  const DeviceArray<std::int8_t> codes(count);
  RunKernel(Quantize<kBits>, blocks, kThreads, x.data(), static_cast<int>(count), codes.data(),
            scales.data());
  const auto got = codes.Get();
  const auto got_scales = scales.Get();
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t end = std::min<std::size_t>(count, (block + 1) * kBlock);
    float largest = 0;
    for (std::size_t i = block * kBlock; i < end; ++i)
      largest = std::max(largest, std::fabs(values[i]));
    ASSERT_EQ(got_scales[block], largest / kLargest);
    const float inverse = largest > 0 ? kLargest / largest : 0;
    for (std::size_t i = block * kBlock; i < end; ++i) {
      const float product = values[i] * inverse;
      const float shifted = std::floor(product + UniformOf(static_cast<std::uint32_t>(i)));
      ASSERT_EQ(got[i], std::clamp(static_cast<int>(shifted), -kLargest, kLargest)) << i;
    }
  }
}

TEST(Quantize, RoundsAtRandomAsTheHostDoes) {
  ExpectQuantizes<8>(5000);
  ExpectQuantizes<4>(5001);
  ExpectQuantizes<8>(513);
}

__global__ void DrawWithCurand(unsigned* words, float* uniforms, int count) {
  const int i = GlobalThread();
  if (i >= count) return;
  curandStatePhilox4_32_10_t state;
  curand_init(1234, static_cast<unsigned>(i), 5, &state);
  words[i] = curand(&state);
  const uint4 four = curand4(&state);
  words[count + i] = four.x ^ four.w;
  uniforms[i] = curand_uniform(&state);
}

TEST(Philox, CurandDrawsTheSameWords) {
  constexpr int kCount = 500;
  const DeviceArray<unsigned> words(2 * kCount);
  const DeviceArray<float> uniforms(kCount);
  RunKernel(DrawWithCurand, 4, 128, words.data(), uniforms.data(), kCount);
  const auto got = words.Get();
  const auto got_uniforms = uniforms.Get();
  for (unsigned i = 0; i < kCount; ++i) {
    const auto word = [&](unsigned at) {
      return Philox({{at / 4, 0, i, 0}}, 1234, 0).word[at % 4];
    };
    ASSERT_EQ(got[i], word(5));
    ASSERT_EQ(got[kCount + i], word(6) ^ word(9));
    constexpr float kStep = 2.3283064e-10F;
    ASSERT_EQ(got_uniforms[i], static_cast<float>(word(10)) * kStep + kStep / 2);
  }
}

extern __shared__ __align__(16) float row[];

// Each block transforms a row of 2^log_size, scaled to keep its length.
__global__ void Hadamard(float* x, int log_size) {
  const int size = 1 << log_size;
  float* mine = x + static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(size);
  const auto me = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  for (int i = me; i < size; i += step) row[i] = mine[i];
  __syncthreads();
  for (int half = 1; half < size; half *= 2) {
    for (int i = me; i < size / 2; i += step) {
      const int low = (i & ~(half - 1)) << 1 | (i & (half - 1));
      const float a = row[low], b = row[low + half];
      row[low] = a + b;
      row[low + half] = a - b;
    }
    __syncthreads();
  }
  const float scale = rsqrtf(static_cast<float>(size));
  for (int i = me; i < size; i += step) mine[i] = row[i] * scale;
}

TEST(Hadamard, TwiceIsTheRowAgain) {
  for (const int log_size : {10, 14}) {
    const std::size_t size = std::size_t{1} << log_size;
    const auto values = NormalFloats(2 * size, static_cast<unsigned>(log_size));
    const DeviceArray<float> x(values);
    const std::size_t bytes = size * sizeof(float);
    Check(cudaFuncSetAttribute(Hadamard, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)));
    Hadamard<<<2, 256, bytes>>>(x.data(), log_size);
    Check(cudaGetLastError());
    double sum = 0;  // the first coefficient is the sum
    for (std::size_t i = 0; i < size; ++i) sum += values[i];
    EXPECT_NEAR(x.Get()[0], sum / std::sqrt(static_cast<double>(size)), 1e-4);
    Hadamard<<<2, 256, bytes>>>(x.data(), log_size);
    Check(cudaGetLastError());
    const auto got = x.Get();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], values[i], 1e-4) << i;
  }
}

}  // namespace
}  // namespace slimgrad
