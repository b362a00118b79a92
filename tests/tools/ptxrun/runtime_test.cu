// The runtime API outside of graphs: memory, symbols, launches, events, streams, errors.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"
#include "tests/tools/ptxrun/kernels.h"

namespace slimgrad {
namespace {

constexpr int kCount = 1000;
constexpr std::size_t kBytes = kCount * sizeof(int);

std::vector<int> CountedFrom(int first) {
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = first + i;
  return values;
}

TEST(Memory, RowsWithAPitch) {
  constexpr std::size_t kWidth = 37, kHeight = 11, kFrom = 50, kTo = 41;
  std::vector<int> from(kFrom * kHeight), to(kTo * kHeight, -1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
  void* rows = nullptr;
  std::size_t pitch = 0;
  constexpr std::size_t kRow = kWidth * sizeof(int);
  Check(cudaMallocPitch(&rows, &pitch, kRow, kHeight));
  EXPECT_GE(pitch, kRow);
  Check(cudaMemcpy2D(rows, pitch, from.data(), kFrom * sizeof(int), kRow, kHeight,
                     cudaMemcpyHostToDevice));
  Check(cudaMemset2D(rows, pitch, 0xff, 2 * sizeof(int), kHeight));
  Check(cudaMemcpy2D(to.data(), kTo * sizeof(int), rows, pitch, kRow, kHeight,
                     cudaMemcpyDeviceToHost));
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 0; x < kTo; ++x)
      EXPECT_EQ(to[y * kTo + x], x < 2 || x >= kWidth ? -1 : from[y * kFrom + x]);
  }
  Check(cudaFree(rows));
}

TEST(Memory, PoolsAndStreamOrder) {
  cudaMemPool_t pool = nullptr;
  Check(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t threshold = ~std::uint64_t{0};
  Check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  threshold = 0;
  Check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT_EQ(threshold, ~std::uint64_t{0});
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreate(&stream));
  int* values = nullptr;
  Check(cudaMallocAsync(&values, kBytes, stream));
  Iota<<<8, 128, 0, stream>>>(values, 5, kCount);
  std::vector<int> got(kCount);
  Check(cudaMemcpyAsync(got.data(), values, kBytes, cudaMemcpyDeviceToHost, stream));
  Check(cudaFreeAsync(values, stream));
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
  EXPECT_EQ(got, CountedFrom(5));
}

TEST(Memory, ManagedAndPinned) {
  int* managed = nullptr;
  Check(cudaMallocManaged(&managed, kBytes));
  RunKernel(Iota, 8, 128, managed, 9, kCount);
  EXPECT_EQ(std::vector<int>(managed, managed + kCount), CountedFrom(9));
  Check(cudaFree(managed));
  int* pinned = nullptr;
  Check(cudaMallocHost(&pinned, kBytes));
  RunKernel(Iota, 8, 128, pinned, 1, kCount);
  EXPECT_EQ(std::vector<int>(pinned, pinned + kCount), CountedFrom(1));
  Check(cudaFreeHost(pinned));
}

__constant__ float scale = 2;
__device__ int table[3] = {5, 6, 7};

__global__ void Scale(float* values) {
  values[threadIdx.x] *= scale * static_cast<float>(table[threadIdx.x % 3]);
}

TEST(Symbols, AreReadAndWritten) {
  const DeviceArray<float> values(std::vector<float>{1, 2, 3});
  RunKernel(Scale, 1, 3, values.data());
  EXPECT_EQ(values.Get(), (std::vector<float>{10, 24, 42}));
  const float other_scale = 4;
  Check(cudaMemcpyToSymbol(scale, &other_scale, sizeof other_scale));
  const int middle = 1;
  Check(cudaMemcpyToSymbol(table, &middle, sizeof middle, sizeof(int)));
  RunKernel(Scale, 1, 3, values.data());
  EXPECT_EQ(values.Get(), (std::vector<float>{200, 96, 1176}));
  std::vector<int> got(3);
  Check(cudaMemcpyFromSymbol(got.data(), table, sizeof table));
  EXPECT_EQ(got, (std::vector<int>{5, 1, 7}));
  std::size_t bytes = 0;
  Check(cudaGetSymbolSize(&bytes, table));
  EXPECT_EQ(bytes, sizeof table);
}

struct Parameters {
  float values[5];
  int factor;
  double addend;
};

__global__ void ByValue(Parameters parameters, float* result) {
  result[threadIdx.x] = parameters.values[threadIdx.x % 5] * static_cast<float>(parameters.factor) +
                        static_cast<float>(parameters.addend);
}

TEST(Launch, TakesStructuresByValueInEveryForm) {
  Parameters parameters = {{1, 2, 3, 4, 5}, 3, 0.5};
  std::vector<float> expected;
  for (std::size_t i = 0; i < 32; ++i) expected.push_back(parameters.values[i % 5] * 3 + 0.5F);
  DeviceArray<float> result(32);
  RunKernel(ByValue, 1, 32, parameters, result.data());
  EXPECT_EQ(result.Get(), expected);

  result.Zero();
  float* out = result.data();
  void* arguments[] = {&parameters, &out};
  Check(cudaLaunchKernel(reinterpret_cast<const void*>(ByValue), dim3(1), dim3(32), arguments, 0,
                         nullptr));
  EXPECT_EQ(result.Get(), expected);

  result.Zero();
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 32;
  Check(cudaLaunchKernelEx(&config, ByValue, parameters, out));
  EXPECT_EQ(result.Get(), expected);
}

TEST(Launch, RefusesWhatNoDeviceCanDo) {
  const DeviceArray<int> values(kCount);
  Iota<<<0, 128>>>(values.data(), 1, kCount);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an error is told once";
  Iota<<<1, 2048>>>(values.data(), 1, kCount);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST(Launch, OccupancyFollowsThreadsAndSharedMemory) {
  int blocks = 0;
  Check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Iota, 256, 0));
  EXPECT_EQ(blocks, 4);
  Check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Iota, 256, std::size_t{1} << 20));
  EXPECT_EQ(blocks, 0);
}

TEST(Events, MeasureTime) {
  cudaEvent_t before = nullptr, after = nullptr;
  Check(cudaEventCreate(&before));
  Check(cudaEventCreate(&after));
  float elapsed = -1;
  EXPECT_EQ(cudaEventElapsedTime(&elapsed, before, after), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  Check(cudaEventRecord(before));
  const DeviceArray<int> values(kCount);
  RunKernel(Iota, 8, 128, values.data(), 1, kCount);
  Check(cudaEventRecord(after));
  Check(cudaEventSynchronize(after));
  Check(cudaEventElapsedTime(&elapsed, before, after));
  EXPECT_GT(elapsed, 0);
  Check(cudaEventDestroy(before));
  Check(cudaEventDestroy(after));
}

TEST(Streams, ADestroyedOneIsNoStream) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreate(&stream));
  Check(cudaStreamDestroy(stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST(Errors, CopiesOutOfBoundsAreRefused) {
  const DeviceArray<int> values(4);
  std::vector<int> host(8);
  EXPECT_EQ(cudaMemcpy(values.data(), host.data(), 20, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), values.data(), 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue)
      << "the wrong way round";
  std::vector<int> other(8);
  EXPECT_EQ(cudaMemcpy(host.data(), other.data(), 16, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue)
      << "from the host";
  EXPECT_EQ(cudaMemset(values.data() + 1, 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(Errors, HaveNames) {
  EXPECT_EQ(std::string(cudaGetErrorName(cudaErrorInvalidValue)), "cudaErrorInvalidValue");
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorInvalidValue)), "invalid argument");
}

TEST(Errors, AFreedBlockCannotBeFreedAgain) {
  void* block = nullptr;
  Check(cudaMalloc(&block, 16));
  Check(cudaFree(block));
  EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace slimgrad
