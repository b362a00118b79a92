// Atomic operations of each type and size, and locks and maxima that are built from
// compare-and-swap.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {
namespace {

constexpr int kThreads = 128;

__global__ void OfInts(int* values) {
  const int thread = GlobalThread();
  atomicAdd(&values[0], thread);
  atomicSub(&values[1], 1);
  atomicMax(&values[2], thread * 37 % 101);
  atomicMin(&values[3], -(thread * 37 % 103));
  atomicExch(&values[4], 77);
}

TEST(Atomics, OfInts) {
  int most = -5;
  int least = 5;
  for (int thread = 0; thread < kThreads; ++thread) {
    most = std::max(most, thread * 37 % 101);
    least = std::min(least, -(thread * 37 % 103));
  }
  DeviceArray<int> values(std::vector<int>{0, 0, -5, 5, 0});
  RunKernel(OfInts, 2, kThreads / 2, values.data());
  EXPECT_EQ(values.Get(),
            (std::vector<int>{kThreads * (kThreads - 1) / 2, -kThreads, most, least, 77}));
}

__global__ void OfWords(unsigned* values) {
  const auto thread = static_cast<unsigned>(GlobalThread());
  atomicAnd(&values[0], ~(1U << (thread & 7)));
  atomicOr(&values[1], 1U << (thread & 31));
  atomicXor(&values[2], thread);
  atomicInc(&values[3], 9);
  atomicDec(&values[4], 6);
}

TEST(Atomics, OfWords) {
  unsigned parity = 0;
  unsigned counted_down = 0;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    parity ^= thread;
    counted_down = counted_down == 0 || counted_down > 6 ? 6 : counted_down - 1;
  }
  DeviceArray<unsigned> values(std::vector<unsigned>{255, 0, 0, 0, 0});
  RunKernel(OfWords, 2, kThreads / 2, values.data());
  EXPECT_EQ(values.Get(), (std::vector<unsigned>{0, ~0U, parity, kThreads % 10, counted_down}));
}

__global__ void OfLongs(unsigned long long* values) {
  const auto thread = static_cast<unsigned long long>(GlobalThread());
  atomicAdd(&values[0], 1ULL << 33);
  atomicMax(&values[1], (thread * 41 % 97) << 40);
}

TEST(Atomics, OfLongs) {
  DeviceArray<unsigned long long> values(2);
  values.Zero();
  RunKernel(OfLongs, 2, kThreads / 2, values.data());
  EXPECT_EQ(values.Get(), (std::vector<unsigned long long>{128ULL << 33, 96ULL << 40}));
}

template <class T>
__global__ void AddTo(T* sum, T value) {
  atomicAdd(sum, value);
}

template <class T>
T SumOverThreads(T value) {
  DeviceArray<T> sum(1);
  sum.Zero();
  RunKernel(AddTo<T>, 2, kThreads / 2, sum.data(), value);
  return sum.Get()[0];
}

TEST(Atomics, SumsOfFloats) {
  EXPECT_EQ(SumOverThreads(0.25F), 32);
  EXPECT_EQ(SumOverThreads(0.125), 16);
}

TEST(Atomics, SumsOfSmallFloats) {
  EXPECT_EQ(__half2float(SumOverThreads(__float2half(1))), kThreads);
  const __half2 halves = SumOverThreads(__floats2half2_rn(1, 2));
  EXPECT_EQ(__low2float(halves), kThreads);
  EXPECT_EQ(__high2float(halves), 2 * kThreads);
  const __nv_bfloat162 bfloats = SumOverThreads(__floats2bfloat162_rn(1, 0.5F));
  EXPECT_EQ(__low2float(bfloats), kThreads);
  EXPECT_EQ(__high2float(bfloats), kThreads / 2);
}

// From sm_90 on one instruction adds a vector.
__global__ void AddToVector(float4* sum) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(sum, make_float4(1, 2, 3, 0.5F));
#endif
}

TEST(Atomics, SumsOfVectors) {
  cudaDeviceProp properties = {};
  Check(cudaGetDeviceProperties(&properties, 0));
  const bool held_back = std::getenv("PTXRUN_SM") != nullptr;
  ASSERT_EQ(properties.major, held_back ? 8 : 9) << "the newest PTX that PTXRUN_SM allows";
  if (held_back) GTEST_SKIP() << "needs sm_90";
  DeviceArray<float4> sum(1);
  sum.Zero();
  RunKernel(AddToVector, 2, kThreads / 2, sum.data());
  const float4 got = sum.Get()[0];
  EXPECT_EQ(got.x, kThreads);
  EXPECT_EQ(got.y, 2 * kThreads);
  EXPECT_EQ(got.z, 3 * kThreads);
  EXPECT_EQ(got.w, kThreads / 2);
}

__global__ void AddByCompareAndSwap(int* sum) {
  int seen = *sum;
  int expected = 0;
  do {
    expected = seen;
    seen = atomicCAS(sum, expected, expected + 3);
  } while (seen != expected);
}

__global__ void MaxByCompareAndSwap(float* most) {
  auto* bits = reinterpret_cast<int*>(most);
  const auto mine = static_cast<float>(GlobalThread());
  int seen = *bits;
  while (__int_as_float(seen) < mine) {
    const int expected = seen;
    seen = atomicCAS(bits, expected, __float_as_int(mine));
    if (seen == expected) return;
  }
}

__global__ void SwapShort(unsigned short* value) {
  atomicCAS(value, static_cast<unsigned short>(0), static_cast<unsigned short>(9));
}

TEST(Atomics, CompareAndSwap) {
  DeviceArray<int> sum(1);
  sum.Zero();
  RunKernel(AddByCompareAndSwap, 2, kThreads / 2, sum.data());
  EXPECT_EQ(sum.Get()[0], 3 * kThreads);

  DeviceArray<float> most(1);
  most.Zero();
  RunKernel(MaxByCompareAndSwap, 2, kThreads / 2, most.data());
  EXPECT_EQ(most.Get()[0], kThreads - 1);

  DeviceArray<unsigned short> shorts(2);
  shorts.Zero();
  RunKernel(SwapShort, 2, kThreads / 2, shorts.data());
  EXPECT_EQ(shorts.Get(), (std::vector<unsigned short>{9, 0}));
}

}  // namespace
}  // namespace slimgrad
