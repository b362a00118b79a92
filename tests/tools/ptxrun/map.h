// For the tests of ptxrun: a function of the device over arrays, against one of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {

template <class Function, class Result, class... T>
__global__ void MapKernel(Function function, int count, Result* result, const T*... inputs) {
  const int i = GlobalThread();
  if (i < count) result[i] = function(inputs[i]...);
}

template <class Function, class First, class... Rest>
auto MapOnDevice(Function function, const std::vector<First>& first,
                 const std::vector<Rest>&... rest) {
  using Result = decltype(function(first[0], rest[0]...));
  DeviceArray<Result> result(first.size());
  const auto run = [&](const auto&... inputs) {
    RunKernel(MapKernel<Function, Result, First, Rest...>, BlocksFor(first.size(), 128), 128,
              function, static_cast<int>(first.size()), result.data(), inputs.data()...);
  };
  run(DeviceArray<First>(first), DeviceArray<Rest>(rest)...);
  return result.Get();
}

// Bit for bit; but one NaN is as good as another.
template <class T>
bool IsSame(T a, T b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  if constexpr (std::is_integral_v<T>) return false;
  return a != a && b != b;
}

// The device's function gives what the host's does for every element.
template <class OnDevice, class OnHost, class First, class... Rest>
void ExpectSame(OnDevice on_device, OnHost on_host, const std::vector<First>& first,
                const std::vector<Rest>&... rest) {
  const auto results = MapOnDevice(on_device, first, rest...);
  for (std::size_t i = 0; i < first.size(); ++i) {
    using Result = typename std::decay_t<decltype(results)>::value_type;
    const Result expected = on_host(first[i], rest[i]...);
    ASSERT_TRUE(IsSame(results[i], expected))
        << "element " << i << ": " << ::testing::PrintToString(results[i]) << ", expected "
        << ::testing::PrintToString(expected) << ", of "
        << ::testing::PrintToString(std::tuple(first[i], rest[i]...));
  }
}

// For a function that both compile.
template <class Function, class... T>
void ExpectSameAsOnHost(Function function, const std::vector<T>&... inputs) {
  ExpectSame(function, function, inputs...);
}

// All comparisons of two values, a bit each.
struct CompareAll {
  template <class T>
  __host__ __device__ int operator()(T x, T y) const {
    return (x < y ? 1 : 0) + (x <= y ? 2 : 0) + (x > y ? 4 : 0) + (x >= y ? 8 : 0) +
           (x == y ? 16 : 0) + (x != y ? 32 : 0);
  }
};

// Units in the last place between two floats; 0 between NaNs.
inline std::int64_t UlpsBetween(float a, float b) {
  if (IsSame(a, b)) return 0;
  const auto ordered = [](float x) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? std::int64_t{INT32_MIN} - bits : std::int64_t{bits};
  };
  return std::llabs(ordered(a) - ordered(b));
}

// The host's function is exact: of doubles, and rounded last.
template <class OnDevice, class OnHost, class... T>
void ExpectWithinUlps(std::int64_t ulps, OnDevice on_device, OnHost on_host,
                      const std::vector<T>&... inputs) {
  const std::vector<float> results = MapOnDevice(on_device, inputs...);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto expected = static_cast<float>(on_host(static_cast<double>(inputs[i])...));
    ASSERT_LE(UlpsBetween(results[i], expected), ulps)
        << "element " << i << ": " << results[i] << ", expected " << expected;
  }
}

}  // namespace slimgrad
