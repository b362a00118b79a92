// Threads that wait for each other: barriers of a block and of a grid, pipelines, blocks in a
// chain.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include <cstddef>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace cg = cooperative_groups;

namespace slimgrad {
namespace {

constexpr unsigned kThreads = 128;

std::vector<int> Reversed(const std::vector<int>& values) {
  return {values.rbegin(), values.rend()};
}

// A kernel of one block that writes its input in reverse, however it gets there.
void ExpectReverses(void (*kernel)(const int*, int*)) {
  const auto values = RandomInts(kThreads, 1000, 1);
  const DeviceArray<int> input(values), result(kThreads);
  RunKernel(kernel, 1, kThreads, input.data(), result.data());
  EXPECT_EQ(result.Get(), Reversed(values));
}

__global__ void ReverseByBarrier(const int* values, int* result) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  // Storage alone: shared memory takes no constructor.
  __shared__ alignas(Barrier) unsigned char storage[sizeof(Barrier)];
  __shared__ int shared[kThreads];
  auto& barrier = *reinterpret_cast<Barrier*>(storage);
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int round = 2; round >= 0; --round) {  // the last round writes what is asked for
    shared[threadIdx.x] = values[threadIdx.x] + round;
    barrier.arrive_and_wait();
    result[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
    barrier.arrive_and_wait();
  }
}

TEST(Block, Barrier) { ExpectReverses(ReverseByBarrier); }

__global__ void ReverseByGroupCopy(const int* values, int* result) {
  __shared__ alignas(16) int shared[kThreads];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, shared, values, sizeof shared);
  cg::wait(block);
  result[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

TEST(Block, GroupCopy) { ExpectReverses(ReverseByGroupCopy); }

__global__ void SumTiles(const int* values, int tiles, int* result) {
  __shared__ alignas(16) int shared[2][kThreads];
  auto pipeline = cuda::make_pipeline();
  const auto fetch = [&](int tile) {
    pipeline.producer_acquire();
    if (tile < tiles)
      cuda::memcpy_async(&shared[tile & 1][threadIdx.x], &values[tile * kThreads + threadIdx.x],
                         sizeof(int), pipeline);
    pipeline.producer_commit();
  };
  fetch(0);
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    fetch(tile + 1);
    cuda::pipeline_consumer_wait_prior<1>(pipeline);
    __syncthreads();
    sum += (tile + 1) * shared[tile & 1][kThreads - 1 - threadIdx.x];
    pipeline.consumer_release();
    __syncthreads();
  }
  result[threadIdx.x] = sum;
}

TEST(Block, Pipeline) {
  constexpr int kTiles = 8;
  const auto values = RandomInts(kTiles * kThreads, 1000, 2);
  std::vector<int> expected(kThreads);
  for (std::size_t i = 0; i < values.size(); ++i)
    expected[kThreads - 1 - i % kThreads] += static_cast<int>(i / kThreads + 1) * values[i];
  const DeviceArray<int> input(values), result(kThreads);
  RunKernel(SumTiles, 1, kThreads, input.data(), kTiles, result.data());
  EXPECT_EQ(result.Get(), expected);
}

// Two of three warps meet; the third goes on.
__global__ void NamedBarrier(int* result) {
  __shared__ int shared[64];
  const auto me = static_cast<int>(threadIdx.x);
  if (me < 64) {
    shared[me] = 3 * me;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    result[me] = shared[63 - me];
  } else {
    result[me] = -1;
  }
}

TEST(Block, NamedBarrier) {
  const DeviceArray<int> result(96);
  RunKernel(NamedBarrier, 1, 96, result.data());
  const auto got = result.Get();
  for (int i = 0; i < 96; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], i < 64 ? 189 - 3 * i : -1);
}

// The first warp does not wait for the second.
__global__ void Arrive(int* result) {
  __shared__ int shared[32];
  const auto me = static_cast<int>(threadIdx.x);
  if (me < 32) {
    shared[me] = me + 5;
    __threadfence_block();
    asm volatile("bar.arrive 2, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");
    result[me - 32] = shared[63 - me];
  }
}

TEST(Block, ArriveWithoutWaiting) {
  const DeviceArray<int> result(32);
  RunKernel(Arrive, 1, 64, result.data());
  const auto got = result.Get();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 36 - i);
}

__global__ void CountingBarriers(int* result) {
  const int odd = __syncthreads_count(threadIdx.x % 2);
  const int all = __syncthreads_and(threadIdx.x < 96);
  const int any = __syncthreads_or(threadIdx.x == 200);
  result[threadIdx.x] = odd + 1000 * (all != 0) + 10000 * (any != 0);
}

TEST(Block, CountingBarriers) {
  const DeviceArray<int> result(96);
  RunKernel(CountingBarriers, 1, 96, result.data());
  EXPECT_EQ(result.Get(), std::vector<int>(96, 1048));
}

// Every block gets the sum over all blocks.
__global__ void SumOfGrid(const int* values, int count, int* partial, int* sums) {
  const auto grid = cg::this_grid();
  int sum = 0;
  for (auto i = static_cast<int>(grid.thread_rank()); i < count; i += static_cast<int>(grid.size()))
    sum += values[i];
  atomicAdd(&partial[blockIdx.x], sum);
  grid.sync();
  int total = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) total += partial[block];
  grid.sync();
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

TEST(Grid, SyncAfterACooperativeLaunch) {
  const auto values = RandomInts(1000, 1000, 3);
  const DeviceArray<int> input(values), sums(4);
  DeviceArray<int> partial(4);
  partial.Zero();
  int count = 1000;
  const int* in = input.data();
  int* parts = partial.data();
  int* out = sums.data();
  void* arguments[] = {&in, &count, &parts, &out};
  const auto* kernel = reinterpret_cast<const void*>(SumOfGrid);
  Check(cudaLaunchCooperativeKernel(kernel, dim3(4), dim3(64), arguments, 0, nullptr));
  Check(cudaDeviceSynchronize());
  const int total = std::accumulate(values.begin(), values.end(), 0);
  EXPECT_EQ(sums.Get(), std::vector<int>(4, total));
  EXPECT_EQ(cudaLaunchCooperativeKernel(kernel, dim3(4000), dim3(64), arguments, 0, nullptr),
            cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
}

// Each block waits for the one before it.
__global__ void Chain(int* turn, int* results) {
  if (threadIdx.x != 0) return;
  const auto block = static_cast<int>(blockIdx.x);
  const cuda::atomic_ref<int, cuda::thread_scope_device> mine(*turn);
  while (mine.load(cuda::memory_order_acquire) != block) __nanosleep(50);
  results[block] = block == 0 ? 1 : 2 * results[block - 1] + 1;
  mine.store(block + 1, cuda::memory_order_release);
}

TEST(Grid, BlocksWaitForEarlierBlocks) {
  DeviceArray<int> turn(1);
  turn.Zero();
  const DeviceArray<int> results(12);
  RunKernel(Chain, 12, 32, turn.data(), results.data());
  const auto got = results.Get();
  for (std::size_t block = 0; block < 12; ++block) EXPECT_EQ(got[block], (2 << block) - 1);
}

}  // namespace
}  // namespace slimgrad
