#include "kernels/combine.h"

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

template <class T>
using Ranks = std::vector<std::vector<T>>;

// Combines the ranks' vectors; each is put `offset` bytes past an aligned address.
template <class T, class Function>
std::vector<T> Apply(Function function, CombineOp op, DType dtype, const Ranks<T>& ranks,
                     const Backend& backend = kBackend, std::size_t offset = 0) {
  const std::size_t bytes = ranks[0].size() * sizeof(T);
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::span<const std::byte>> inputs;
  for (const std::vector<T>& rank : ranks) {
    memory.emplace_back(offset + bytes);
    if (bytes != 0) std::memcpy(memory.back().data() + offset, rank.data(), bytes);
  }
  for (const auto& rank : memory) inputs.push_back(std::span(rank).subspan(offset));
  std::vector<std::byte> to(offset + bytes);
  function(backend, op, dtype, inputs, std::span(to).subspan(offset));
  std::vector<T> result(ranks[0].size());
  if (bytes != 0) std::memcpy(result.data(), to.data() + offset, bytes);
  return result;
}

template <class T>
std::vector<T> Both(CombineOp op, DType dtype, const Ranks<T>& ranks) {
  const std::vector<T> result = Apply(subject::Combine, op, dtype, ranks);
  EXPECT_TRUE(SameBits(result, Apply(ref::Combine, op, dtype, ranks)));
  return result;
}

float Mean(const std::vector<float>& elements) {
  Ranks<float> ranks;
  for (float element : elements) ranks.push_back({element});
  return Both(CombineOp::kMean, DType::kF32, ranks)[0];
}

std::uint16_t SmallMean(DType dtype, const std::vector<std::uint16_t>& elements) {
  Ranks<std::uint16_t> ranks;
  for (std::uint16_t element : elements) ranks.push_back({element});
  return Both(CombineOp::kMean, dtype, ranks)[0];
}

TEST(CombineTest, MeanOfHalvesDoesNotOverflowOrVanish) {
  EXPECT_EQ(SmallMean(DType::kF16, {0x78E2, 0x78E2}), 0x78E2);                          // 40000
  EXPECT_EQ(SmallMean(DType::kF16, std::vector<std::uint16_t>(1024, 0x0001)), 0x0001);  // 2^-24
  EXPECT_EQ(SmallMean(DType::kF16, std::vector<std::uint16_t>(1024, 0x7BFF)), 0x7BFF);  // 65504
  EXPECT_EQ(SmallMean(DType::kF16, {0x0001, 0x0000}), 0x0000);  // half of 2^-24: tie to even
  EXPECT_EQ(SmallMean(DType::kF16, {0x0001, 0x0002}), 0x0002);
  EXPECT_EQ(SmallMean(DType::kF16, {0x7C00, 0x3C00}), 0x7C00);
  EXPECT_EQ(SmallMean(DType::kF16, {0x7C00, 0xFC00}), 0x7E00);
  EXPECT_EQ(SmallMean(DType::kF16, {0x3C00, 0xFE01}), 0x7E00);
}

// The fp32 sum of so many is rounded upwards often enough for its quotient to lie half a unit above
// every input.
TEST(CombineTest, MeansThatRoundingLiftsSaturate) {
  EXPECT_EQ(SmallMean(DType::kF16, std::vector<std::uint16_t>(17000, 0x7BFF)), 0x7BFF);
  EXPECT_EQ(SmallMean(DType::kF16, std::vector<std::uint16_t>(17000, 0xFBFF)), 0xFBFF);
  EXPECT_EQ(SmallMean(DType::kBF16, std::vector<std::uint16_t>(17000, 0x7F7F)), 0x7F7F);
  EXPECT_EQ(Mean(std::vector<float>(17000, kMaxFloat)), kMaxFloat);
  // A whole group of which one element is so.
  Ranks<std::uint16_t> ranks(17000, std::vector<std::uint16_t>(64, 0x3C00));
  for (std::vector<std::uint16_t>& rank : ranks) rank[17] = 0x7BFF;
  std::vector<std::uint16_t> expected(64, 0x3C00);
  expected[17] = 0x7BFF;
  EXPECT_EQ(Both(CombineOp::kMean, DType::kF16, ranks), expected);
}

TEST(CombineTest, MeanOfBFloatsWidensWhereTheSumOverflows) {
  EXPECT_EQ(SmallMean(DType::kBF16, {0x7F7F, 0x7F7F, 0x7F7F}), 0x7F7F);
  EXPECT_EQ(SmallMean(DType::kBF16, std::vector<std::uint16_t>(1024, 0xFF7F)), 0xFF7F);
  EXPECT_EQ(SmallMean(DType::kBF16, {0x7F7F, 0x7F7F, 0xFF7F, 0xFF7F}), 0x0000);
  EXPECT_EQ(SmallMean(DType::kBF16, {0x3F80, 0x4000}), 0x3FC0);  // 1.5
}

TEST(CombineTest, MeanOfFloats) {
  EXPECT_EQ(Mean({1, 2, 6}), 3.0F);
  // Rank order: 1e8 + 1 loses the 1.
  EXPECT_EQ(Mean({1e8F, 1.0F, -1e8F}), 0.0F);
  EXPECT_EQ(Mean({1e8F, -1e8F, 1.0F}), 1.0F / 3.0F);
  EXPECT_EQ(ToBits(Mean({-0.0F, -0.0F})), ToBits(-0.0F));
  EXPECT_EQ(Mean({1e-45F, 0.0F, 0.0F}), 0.0F);
  EXPECT_EQ(Mean(std::vector<float>(1024, 0x1p-24F)), 0x1p-24F);
}

TEST(CombineTest, MeanOfFiniteValuesIsFinite) {
  EXPECT_EQ(Mean({3e38F, 3e38F}), 3e38F);
  EXPECT_EQ(Mean({kMaxFloat, kMaxFloat, kMaxFloat}), kMaxFloat);
  EXPECT_EQ(Mean(std::vector<float>(1025, -kMaxFloat)), -kMaxFloat);
  EXPECT_EQ(Mean({3e38F, 3e38F, -3e38F, -3e38F}), 0.0F);
}

TEST(CombineTest, WhatIsNotFiniteStaysSo) {
  EXPECT_EQ(Mean({1.0F, kInf}), kInf);
  EXPECT_EQ(Mean({kMaxFloat, kMaxFloat, -kInf}), -kInf);
  EXPECT_EQ(ToBits(Mean({kInf, -kInf})), 0x7FC00000U);
  EXPECT_EQ(ToBits(Mean({1.0F, FromBits(0xFF800123)})), 0x7FC00000U);
}

TEST(CombineTest, SumsWrapAround) {
  EXPECT_EQ(Both<std::int32_t>(CombineOp::kSum, DType::kI32,
                               {{1, 0x7FFFFFFF, -5}, {2, 1, -6}, {3, 0, 7}}),
            (std::vector<std::int32_t>{6, std::numeric_limits<std::int32_t>::min(), -4}));
  EXPECT_EQ(Both<std::uint64_t>(CombineOp::kSum, DType::kU64, {{~0ULL, 1}, {2, 1ULL << 63}}),
            (std::vector<std::uint64_t>{1, (1ULL << 63) + 1}));
}

TEST(CombineTest, MaxKeepsTheLowestRankOfEqualValues) {
  EXPECT_EQ(Both<float>(CombineOp::kMax, DType::kF32, {{1, -5}, {3, -7}, {2, -6}}),
            (std::vector<float>{3, -5}));
  EXPECT_TRUE(SameBits(Both<float>(CombineOp::kMax, DType::kF32, {{-0.0F, 0.0F}, {0.0F, -0.0F}}),
                       {-0.0F, 0.0F}));
  EXPECT_EQ(Both<std::uint8_t>(CombineOp::kMax, DType::kU8, {{1, 200}, {255, 127}}),
            (std::vector<std::uint8_t>{255, 200}));
}

TEST(CombineTest, TheResultMayReplaceTheFirstInput) {
  std::vector<float> a = MakeInput(Pattern::kHuge, 3000, 1);
  const std::vector<float> b = MakeInput(Pattern::kHuge, 3000, 2);
  const std::vector<float> expected =
      Apply(ref::Combine, CombineOp::kMean, DType::kF32, Ranks<float>{a, b});
  const std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(a)),
                                                          std::as_bytes(std::span(b))};
  subject::Combine(kBackend, CombineOp::kMean, DType::kF32, inputs,
                   std::as_writable_bytes(std::span(a)));
  EXPECT_TRUE(SameBits(a, expected));
}

template <class T>
void ExpectRefAgrees(CombineOp op, DType dtype, const Ranks<T>& ranks, const Backend& backend,
                     std::size_t offset) {
  EXPECT_TRUE(SameBits(Apply(subject::Combine, op, dtype, ranks, backend, offset),
                       Apply(ref::Combine, op, dtype, ranks)))
      << NameOf(dtype) << ", " << ranks.size() << " ranks of " << ranks[0].size() << ", offset "
      << offset;
}

// Three ranks of `pattern` each, also read as other dtypes.
void TryAllPairs(Pattern pattern, std::size_t n, std::size_t count, const Backend& backend,
                 std::size_t offset) {
  Ranks<float> floats;
  Ranks<std::uint16_t> halves;
  Ranks<std::int32_t> integers;
  Ranks<std::uint64_t> longs;
  Ranks<std::uint8_t> bytes;
  std::mt19937_64 random(n);
  for (std::size_t r = 0; r < count; ++r) {
    floats.push_back(MakeInput(pattern, n, static_cast<std::uint32_t>(r + 1)));
    std::vector<std::uint64_t> words(n);
    for (std::uint64_t& word : words) word = random();
    longs.push_back(words);
    halves.emplace_back(words.begin(), words.end());
    bytes.emplace_back(words.begin(), words.end());
    integers.emplace_back(n);
    if (n != 0) std::memcpy(integers.back().data(), words.data(), n * 4);
  }
  ExpectRefAgrees(CombineOp::kMean, DType::kF32, floats, backend, offset);
  ExpectRefAgrees(CombineOp::kMax, DType::kF32, floats, backend, offset);
  ExpectRefAgrees(CombineOp::kMean, DType::kF16, halves, backend, offset);
  ExpectRefAgrees(CombineOp::kMean, DType::kBF16, halves, backend, offset);
  ExpectRefAgrees(CombineOp::kSum, DType::kI32, integers, backend, offset);
  ExpectRefAgrees(CombineOp::kSum, DType::kU64, longs, backend, offset);
  ExpectRefAgrees(CombineOp::kMax, DType::kU8, bytes, backend, offset);
}

TEST(CombineTest, AllPairsAsTheReferenceDoes) {
  for (Pattern pattern : kPatterns) {
    for (std::size_t n : {0, 1, 7, 8, 65, 1023, 1024, 1025, 2 * 1024 + 17}) {
      for (std::size_t count : {1, 2, 3, 8}) {
        TryAllPairs(pattern, n, count, kBackend, 0);
        if (HasFailure()) FAIL() << NameOf(pattern);
      }
    }
  }
}

TEST(CombineTest, AnyAlignment) {
  for (std::size_t offset = 1; offset < 9; ++offset)
    TryAllPairs(Pattern::kExponents, 1030, 3, kBackend, offset);
}

TEST(CombineTest, ManyRanks) {
  for (Pattern pattern : {Pattern::kHuge, Pattern::kNormal, Pattern::kExponents})
    TryAllPairs(pattern, 65, 1030, kBackend, 0);
}

TEST(CombineTest, ThreadsChangeNothing) {
  FourThreads threads;
  TryAllPairs(Pattern::kExponents, kManyTasks, 2, threads.backend(), 0);
}

// Outputs past the caches; also where no element begins a cache line.
TEST(CombineTest, StreamedOutputsAreTheSame) {
  FourThreads threads;
  for (std::size_t offset : {0, 4, 8, 9})
    TryAllPairs(Pattern::kHuge, Streamed(), 2, threads.backend(), offset);
}

// One element of a group needs the fp64 sum; its neighbours do not.
TEST(CombineTest, SumsOverflowAtEveryPlace) {
  for (std::size_t at = 0; at < 150; ++at) {
    Ranks<float> ranks(3, std::vector<float>(150, 1.0F));
    for (std::vector<float>& rank : ranks) rank[at] = kMaxFloat;
    std::vector<float> expected(150, 1.0F);
    expected[at] = kMaxFloat;
    EXPECT_TRUE(SameBits(Both(CombineOp::kMean, DType::kF32, ranks), expected)) << at;
  }
}

TEST(CombineTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  for (std::size_t count : {2, 300}) {
    const Ranks<float> ranks(count, std::vector<float>(3000, 6.0F));
    Backend backend;
    backend.only_if = &never;
    EXPECT_EQ(Apply(subject::Combine, CombineOp::kMean, DType::kF32, ranks, backend),
              std::vector<float>(3000, 0.0F));
    backend.only_if = &always;
    EXPECT_EQ(Apply(subject::Combine, CombineOp::kMean, DType::kF32, ranks, backend), ranks[0]);
  }
}

TEST(CombineTest, KnowsItsPairs) {
  EXPECT_TRUE(CanCombine(CombineOp::kMean, DType::kBF16));
  EXPECT_FALSE(CanCombine(CombineOp::kMean, DType::kI32));
  EXPECT_FALSE(CanCombine(CombineOp::kSum, DType::kF32));
  EXPECT_TRUE(CanCombine(CombineOp::kMax, DType::kU8));
  EXPECT_FALSE(CanCombine(CombineOp::kMax, DType::kF16));
}

TEST(CombineDeathTest, MistakesOfTheCallerStop) {
  std::vector<std::byte> a(8), b(4), odd(6), to(8);
  const std::vector<std::span<const std::byte>> none;
  const std::vector<std::span<const std::byte>> unequal = {a, b};
  const std::vector<std::span<const std::byte>> one = {a};
  const std::vector<std::span<const std::byte>> partial = {odd};
  EXPECT_DEATH(subject::Combine(kBackend, CombineOp::kMean, DType::kF32, none, to), "check failed");
  EXPECT_DEATH(subject::Combine(kBackend, CombineOp::kMean, DType::kF32, unequal, to),
               "check failed");
  EXPECT_DEATH(subject::Combine(kBackend, CombineOp::kSum, DType::kF32, one, to), "check failed");
  EXPECT_DEATH(subject::Combine(kBackend, CombineOp::kMean, DType::kF32, partial, odd),
               "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
