// Loads and stores: vectors, cache hints, asynchronous copies into shared memory, far offsets,
// dynamic shared memory, clocks.
#include <cuda_pipeline.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {
namespace {

constexpr int kCount = 777;

// values[i] + values[count - 1 - i], by loads and stores with every cache hint.
__global__ void AddMirrored(const float4* vectors, float4* vector_sums, const float* values,
                            float* sums, int count) {
  const int i = GlobalThread();
  if (i >= count) return;
  const int mirrored = count - 1 - i;
  const float4 x = __ldg(&vectors[i]);
  const float4 y = __ldcs(&vectors[mirrored]);
  __stcs(&vector_sums[i], make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w));
  const float from_l2 = __ldcg(&values[i]) - __ldca(&values[i]);
  __stwt(&sums[i], from_l2 + __ldlu(&values[i]) + __ldcv(&values[mirrored]));
}

TEST(Memory, VectorsAndCacheHints) {
  const auto values = NormalFloats(kCount, 1);
  const auto parts = NormalFloats(4 * kCount, 2);
  std::vector<float4> vectors;
  for (std::size_t i = 0; i < parts.size(); i += 4)
    vectors.push_back(make_float4(parts[i], parts[i + 1], parts[i + 2], parts[i + 3]));
  const DeviceArray<float4> x(vectors), vector_sums(kCount);
  const DeviceArray<float> y(values), sums(kCount);
  RunKernel(AddMirrored, BlocksFor(kCount, 128), 128, x.data(), vector_sums.data(), y.data(),
            sums.data(), kCount);
  const auto got_vectors = vector_sums.Get();
  const auto got = sums.Get();
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t mirrored = kCount - 1 - i;
    EXPECT_EQ(got[i], values[i] + values[mirrored]);
    EXPECT_EQ(got_vectors[i].x, vectors[i].x + vectors[mirrored].x);
    EXPECT_EQ(got_vectors[i].w, vectors[i].w + vectors[mirrored].w);
  }
}

constexpr int kTileThreads = 64;

// Sums tiles, mirrored, while the next kStages - 1 are on their way.
template <int kStages>
__global__ void SumTiles(const float4* tiles, int count, float* sums) {
  __shared__ float4 shared[kStages][kTileThreads];
  const unsigned me = threadIdx.x;
  const auto fetch = [&](int tile) {
    if (tile < count)
      __pipeline_memcpy_async(&shared[tile % kStages][me], &tiles[tile * kTileThreads + me],
                              sizeof(float4));
    __pipeline_commit();
  };
  for (int tile = 0; tile < kStages - 1; ++tile) fetch(tile);
  float sum = 0;
  for (int tile = 0; tile < count; ++tile) {
    fetch(tile + kStages - 1);
    __pipeline_wait_prior(kStages - 1);
    __syncthreads();
    const float4 x = shared[tile % kStages][kTileThreads - 1 - me];
    sum += x.x + 2 * x.y + 3 * x.z + 4 * x.w;
    __syncthreads();
  }
  sums[me] = sum;
}

TEST(Memory, AsynchronousCopies) {
  constexpr int kTiles = 9;
  const auto parts = RandomInts(kTiles * kTileThreads * 4, 10, 3);
  const DeviceArray<float4> tiles(kTiles * kTileThreads);
  const std::vector<float> floats(parts.begin(), parts.end());
  Check(cudaMemcpy(tiles.data(), floats.data(), tiles.bytes(), cudaMemcpyHostToDevice));
  std::vector<float> expected(kTileThreads);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t thread = i / 4 % kTileThreads;
    expected[kTileThreads - 1 - thread] += static_cast<float>(i % 4 + 1) * floats[i];
  }
  const DeviceArray<float> sums(kTileThreads);
  RunKernel(SumTiles<2>, 1, kTileThreads, tiles.data(), kTiles, sums.data());
  EXPECT_EQ(sums.Get(), expected);
  RunKernel(SumTiles<4>, 1, kTileThreads, tiles.data(), kTiles, sums.data());
  EXPECT_EQ(sums.Get(), expected);
}

__global__ void CopyOrZero(const int* values, int count, int* result) {
  __shared__ int shared[128];
  const auto me = static_cast<int>(threadIdx.x);
  const bool inside = me < count;
  __pipeline_memcpy_async(&shared[me], &values[inside ? me : 0], sizeof(int),
                          inside ? 0 : sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  result[me] = shared[127 - me];
}

TEST(Memory, AsynchronousCopiesFillWithZeros) {
  const auto values = RandomInts(100, 1000, 4);
  const DeviceArray<int> input(values), result(128);
  RunKernel(CopyOrZero, 1, 128, input.data(), 100, result.data());
  const auto got = result.Get();
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(got[127 - i], i < 100 ? values[i] : 0);
}

__global__ void ReadFar(const std::uint8_t* bytes, std::size_t offset, int* result) {
  result[threadIdx.x] = bytes[offset + threadIdx.x];
}

TEST(Memory, OffsetsAboveFourGiB) {
  const std::size_t size = std::size_t{5} << 30;
  const DeviceArray<std::uint8_t> bytes(size);  // of which a page is touched
  const std::vector<std::uint8_t> last = {1, 2, 3, 4};
  Check(cudaMemcpy(bytes.data() + size - 4, last.data(), 4, cudaMemcpyHostToDevice));
  const DeviceArray<int> result(4);
  RunKernel(ReadFar, 1, 4, bytes.data(), size - 4, result.data());
  EXPECT_EQ(result.Get(), (std::vector<int>{1, 2, 3, 4}));
}

extern __shared__ float dynamic[];

__global__ void Mirror(float* values) {
  dynamic[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}

TEST(Memory, DynamicSharedMemoryAbove48KiBIsAskedFor) {
  constexpr int kBytes = 64 << 10;
  const auto values = NormalFloats(32, 5);
  const DeviceArray<float> array(values);
  Mirror<<<1, 32, kBytes>>>(array.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  Check(cudaFuncSetAttribute(Mirror, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  Mirror<<<1, 32, kBytes>>>(array.data());
  Check(cudaGetLastError());
  EXPECT_EQ(array.Get(), std::vector<float>(values.rbegin(), values.rend()));
}

__global__ void Clocks(long long* cycles) {
  const long long start = clock64();
  __nanosleep(100);
  __threadfence_system();
  cycles[threadIdx.x] = clock64() - start;
}

TEST(Memory, ClocksAdvance) {
  const DeviceArray<long long> cycles(32);
  RunKernel(Clocks, 1, 32, cycles.data());
  for (const long long elapsed : cycles.Get()) EXPECT_GT(elapsed, 0);
}

}  // namespace
}  // namespace slimgrad
