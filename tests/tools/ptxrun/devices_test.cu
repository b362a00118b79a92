// Several devices, and several host threads: a rank as a thread with a device of its own, memory of
// peers, kernels that wait for each other. The build gives the test four devices.
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"
#include "tests/tools/ptxrun/kernels.h"

namespace slimgrad {
namespace {

constexpr int kDevices = 4;
constexpr int kCount = 1000;

// Calls function(number) on so many threads at once.
template <class Function>
void OnThreads(int count, Function function) {
  std::vector<std::thread> threads;
  for (int number = 0; number < count; ++number) threads.emplace_back(function, number);
  for (std::thread& thread : threads) thread.join();
}

__device__ int counter;

__global__ void CountThreads() { atomicAdd(&counter, 1); }

TEST(Devices, AreCounted) {
  int count = 0;
  Check(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, kDevices);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Devices, RanksAsThreadsHaveMemoryAndVariablesOfTheirOwn) {
  const auto x_host = NormalFloats(kCount, 1);
  std::vector<std::vector<float>> results(kDevices);
  std::vector<int> counts(kDevices);
  OnThreads(kDevices, [&](int rank) {
    Check(cudaSetDevice(rank));
    const DeviceArray<float> x(x_host);
    DeviceArray<float> y(kCount);
    y.Zero();
    for (int step = 0; step < 20; ++step)
      RunKernel(Axpy, 8, 128, static_cast<float>(1 << rank), x.data(), y.data(), kCount);
    for (int step = 0; step <= rank; ++step) RunKernel(CountThreads, 1, 32);
    const auto index = static_cast<std::size_t>(rank);
    Check(cudaMemcpyFromSymbol(&counts[index], counter, sizeof(int)));
    results[index] = y.Get();
  });
  for (std::size_t rank = 0; rank < kDevices; ++rank) {
    std::vector<float> expected(kCount);
    for (int step = 0; step < 20; ++step) {
      for (std::size_t i = 0; i < kCount; ++i)
        expected[i] += static_cast<float>(1 << rank) * x_host[i];
    }
    EXPECT_EQ(results[rank], expected);
    EXPECT_EQ(counts[rank], 32 * (static_cast<int>(rank) + 1));
  }
}

TEST(Devices, APeersMemoryIsReachedWhereAccessIsEnabled) {
  int can = 0;
  Check(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  Check(cudaSetDevice(1));
  DeviceArray<float> theirs(kCount);
  theirs.Zero();
  Check(cudaSetDevice(0));
  Check(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);

  const auto values = NormalFloats(kCount, 2);
  const DeviceArray<float> ours(values), copy(kCount);
  RunKernel(Axpy, 8, 128, 1.0F, ours.data(), theirs.data(), kCount);
  Check(cudaMemcpyPeer(copy.data(), 0, theirs.data(), 1, copy.bytes()));
  EXPECT_EQ(copy.Get(), values);

  cudaPointerAttributes attributes = {};
  Check(cudaPointerGetAttributes(&attributes, theirs.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
}

__global__ void WaitForFlag(volatile int* flag, int* result) {
  while (*flag == 0) __nanosleep(100);
  __threadfence_system();
  *result = *flag + 1;
}

__global__ void SetFlag(volatile int* flag, int value) {
  __threadfence_system();
  *flag = value;
}

TEST(Devices, AKernelWaitsForOneOfAnotherDevice) {
  int* words = nullptr;
  Check(cudaMallocHost(&words, 2 * sizeof(int)));
  words[0] = 0;
  OnThreads(2, [&](int number) {
    Check(cudaSetDevice(2 + number));
    if (number == 0) {
      RunKernel(WaitForFlag, 1, 1, words, words + 1);
    } else {
      RunKernel(SetFlag, 1, 1, words, 41);
    }
  });
  EXPECT_EQ(words[1], 42);
  Check(cudaFreeHost(words));
}

TEST(Devices, HostThreadsShareOne) {
  std::atomic<int> right = 0;
  OnThreads(4, [&](int number) {
    cudaStream_t stream = nullptr;
    Check(cudaStreamCreate(&stream));
    const int count = 100 + 50 * number;
    std::vector<int> got(static_cast<std::size_t>(count));
    const std::size_t bytes = got.size() * sizeof(int);
    for (int step = 0; step < 15; ++step) {
      int* values = nullptr;
      Check(cudaMallocAsync(&values, bytes, stream));
      Iota<<<BlocksFor(got.size(), 64), 64, 0, stream>>>(values, 1000 * number + step, count);
      Check(cudaMemcpyAsync(got.data(), values, bytes, cudaMemcpyDeviceToHost, stream));
      Check(cudaStreamSynchronize(stream));
      Check(cudaFreeAsync(values, stream));
      right += got.front() == 1000 * number + step && got.back() == got.front() + count - 1;
    }
    Check(cudaStreamDestroy(stream));
  });
  EXPECT_EQ(right, 4 * 15);
}

}  // namespace
}  // namespace slimgrad
