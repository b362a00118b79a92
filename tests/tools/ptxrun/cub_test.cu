// CUB's algorithms over a whole device, as compressors use them. In one file: nvcc takes a minute.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {
namespace {

constexpr int kCount = 6007;

// CUB is called twice: for how much memory it needs, and with it.
template <class Call>
void WithTemporaryStorage(Call call) {
  std::size_t bytes = 0;
  Check(call(nullptr, bytes));
  const DeviceArray<std::uint8_t> storage(bytes + 1);
  Check(call(storage.data(), bytes));
  Check(cudaDeviceSynchronize());
}

template <class T>
std::vector<T> First(const DeviceArray<T>& array, const DeviceArray<int>& count) {
  auto values = array.Get();
  values.resize(static_cast<std::size_t>(count.Get()[0]));
  return values;
}

struct IsLarge {
  __host__ __device__ bool operator()(float x) const { return fabsf(x) > 1.5F; }
};

TEST(Cub, SelectsByAPredicateAndByFlags) {
  const auto values = NormalFloats(kCount, 1);
  std::vector<float> large;
  std::vector<int> places;
  std::vector<char> flags;
  for (int i = 0; i < kCount; ++i) {
    const float value = values[static_cast<std::size_t>(i)];
    flags.push_back(IsLarge()(value) ? 1 : 0);
    if (flags.back() == 0) continue;
    large.push_back(value);
    places.push_back(i);
  }
  const DeviceArray<float> x(values), selected(kCount);
  const DeviceArray<char> marks(flags);
  const DeviceArray<int> indices(kCount), count(1);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceSelect::If(storage, bytes, x.data(), selected.data(), count.data(), kCount,
                                 IsLarge());
  });
  EXPECT_EQ(First(selected, count), large);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(storage, bytes, thrust::counting_iterator<int>(0),
                                      marks.data(), indices.data(), count.data(), kCount);
  });
  EXPECT_EQ(First(indices, count), places);
}

TEST(Cub, Scans) {
  const auto values = RandomInts(kCount, 9, 2);
  std::vector<int> sums(kCount);
  std::partial_sum(values.begin(), values.end(), sums.begin());
  const DeviceArray<int> x(values), result(kCount);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, x.data(), result.data(), kCount);
  });
  EXPECT_EQ(result.Get(), sums);
}

TEST(Cub, SortsPairsAndKeepsTheOrderOfEqualKeys) {
  auto keys = RandomWords(kCount, 3);
  for (unsigned& key : keys) key = key % 1000 * 77777;
  std::vector<int> order(kCount);
  std::iota(order.begin(), order.end(), 0);
  const DeviceArray<unsigned> in(keys), out(kCount);
  const DeviceArray<int> values(order), sorted(kCount);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, in.data(), out.data(), values.data(),
                                           sorted.data(), kCount);
  });
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
  EXPECT_EQ(sorted.Get(), order);
}

TEST(Cub, SortsFloatsDownwards) {
  auto values = NormalFloats(kCount, 4);
  const DeviceArray<float> in(values), out(kCount);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeysDescending(storage, bytes, in.data(), out.data(), kCount);
  });
  std::sort(values.rbegin(), values.rend());
  EXPECT_EQ(out.Get(), values);
}

struct Square {
  __host__ __device__ float operator()(float x) const { return x * x; }
};

TEST(Cub, Reduces) {
  const auto values = NormalFloats(kCount, 5);
  const DeviceArray<float> x(values), result(1);
  const DeviceArray<std::int64_t> place(1);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceReduce::ArgMax(storage, bytes, x.data(), result.data(), place.data(),
                                     std::int64_t{kCount});
  });
  const auto largest = std::max_element(values.begin(), values.end());
  EXPECT_EQ(result.Get()[0], *largest);
  EXPECT_EQ(place.Get()[0], largest - values.begin());
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(storage, bytes, x.data(), result.data(), kCount,
                                              ::cuda::std::plus<>(), Square(), 0.0F);
  });
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(result.Get()[0], squares, 1e-4 * squares);
}

TEST(Cub, ReducesSegments) {
  const auto values = RandomInts(kCount, 9, 6);
  const auto lengths = RandomInts(kCount, 700, 7);
  std::vector<int> offsets = {0}, sums;
  while (offsets.back() < kCount) {
    const int end = std::min(kCount, offsets.back() + lengths[offsets.size()]);
    sums.push_back(std::accumulate(values.begin() + offsets.back(), values.begin() + end, 0));
    offsets.push_back(end);
  }
  const DeviceArray<int> x(values), starts(offsets), result(sums.size());
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(storage, bytes, x.data(), result.data(),
                                           static_cast<int>(sums.size()), starts.data(),
                                           starts.data() + 1);
  });
  EXPECT_EQ(result.Get(), sums);
}

TEST(Cub, EncodesRuns) {
  const auto draws = RandomInts(kCount, 5, 8);
  std::vector<int> values, runs, lengths;
  for (const int draw : draws)
    values.insert(values.end(), static_cast<std::size_t>(1 + draw), draw);
  values.resize(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i] != values[i - 1]) {
      runs.push_back(values[i]);
      lengths.push_back(0);
    }
    ++lengths.back();
  }
  const DeviceArray<int> x(values), run_values(kCount), run_lengths(kCount), count(1);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(storage, bytes, x.data(), run_values.data(),
                                              run_lengths.data(), count.data(), kCount);
  });
  EXPECT_EQ(First(run_values, count), runs);
  EXPECT_EQ(First(run_lengths, count), lengths);
}

TEST(Cub, CountsIntoAHistogram) {
  const auto values = RandomInts(kCount, 9, 9);
  std::vector<int> expected(9);
  for (const int value : values) ++expected[static_cast<std::size_t>(value)];
  const DeviceArray<int> x(values), bins(9);
  WithTemporaryStorage([&](void* storage, std::size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(storage, bytes, x.data(), bins.data(), 10, 0, 9,
                                               kCount);
  });
  EXPECT_EQ(bins.Get(), expected);
}

struct HalfXPlusY {
  __host__ __device__ float operator()(float x, float y) const { return 0.5F * x + y; }
};

TEST(Cub, Transforms) {
  const auto x_host = NormalFloats(kCount, 10), y_host = NormalFloats(kCount, 11);
  const DeviceArray<float> x(x_host), y(y_host), result(kCount);
  Check(cub::DeviceTransform::Transform(::cuda::std::make_tuple(x.data(), y.data()), result.data(),
                                        kCount, HalfXPlusY()));
  Check(cudaDeviceSynchronize());
  const auto got = result.Get();
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], HalfXPlusY()(x_host[i], y_host[i])) << i;
}

}  // namespace
}  // namespace slimgrad
