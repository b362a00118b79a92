#include "kernels/select.h"

#include "tests/kernels/inputs.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

struct Chosen {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

template <class Function>
Chosen Apply(Function function, In x, std::size_t k, const Backend& backend = kBackend) {
  Chosen chosen = {std::vector<std::uint32_t>(k), std::vector<float>(k)};
  function(backend, x, std::span<std::uint32_t>(chosen.indices), Out(chosen.values));
  return chosen;
}

std::vector<std::uint32_t> TopIndices(In x, std::size_t k) {
  const Chosen chosen = Apply(TopK, x, k);
  const Chosen expected = Apply(ref::TopK, x, k);
  EXPECT_EQ(chosen.indices, expected.indices);
  EXPECT_TRUE(SameBits(chosen.values, expected.values));
  return chosen.indices;
}

using Indices = std::vector<std::uint32_t>;

TEST(TopKTest, LowerIndexWinsTies) {
  const std::vector<float> x = {3, 2, 3, 2, 1, 1};
  EXPECT_EQ(TopIndices(x, 0), Indices{});
  EXPECT_EQ(TopIndices(x, 1), Indices{0});
  EXPECT_EQ(TopIndices(x, 2), (Indices{0, 2}));
  EXPECT_EQ(TopIndices(x, 3), (Indices{0, 1, 2}));
  EXPECT_EQ(TopIndices(x, 5), (Indices{0, 1, 2, 3, 4}));
  EXPECT_EQ(TopIndices(x, 6), (Indices{0, 1, 2, 3, 4, 5}));
}

TEST(TopKTest, ZerosOfBothSignsAreEqual) {
  const std::vector<float> x = {-0.0F, +0.0F, -0.0F, +0.0F};
  EXPECT_EQ(TopIndices(x, 2), (Indices{0, 1}));
  EXPECT_TRUE(SameBits(Apply(TopK, x, 2).values, {-0.0F, +0.0F}));
}

TEST(TopKTest, MagnitudeCounts) {
  EXPECT_EQ(TopIndices(std::vector<float>{1, -4, 3, 4, -2}, 3), (Indices{1, 2, 3}));
  // One unit in the last place apart, in each of the three digits of the selection.
  EXPECT_EQ(TopIndices(std::vector<float>{FromBits(0x3F800000), FromBits(0xBF800001)}, 1),
            Indices{1});
  EXPECT_EQ(TopIndices(std::vector<float>{FromBits(0x3F8003FF), FromBits(0x3F800400)}, 1),
            Indices{1});
  EXPECT_EQ(TopIndices(std::vector<float>{FromBits(0x3F8FFFFF), FromBits(0x3F900000)}, 1),
            Indices{1});
  EXPECT_EQ(TopIndices(std::vector<float>{0.0F, FromBits(0x80000001), FromBits(0x00000002)}, 1),
            Indices{2});
  EXPECT_EQ(TopIndices(std::vector<float>{kMaxFloat, -3e38F, 3e38F}, 2), (Indices{0, 1}));
}

TEST(TopKTest, NansRankAboveInfinity) {
  const std::vector<float> x = {kInf, 1.0F, kNan, -kInf};
  EXPECT_EQ(Apply(TopK, x, 1).indices, Indices{2});
  EXPECT_EQ(Apply(TopK, x, 2).indices, (Indices{0, 2}));
}

TEST(TopKTest, EveryInputAsTheReferenceDoes) {
  ForEveryInput([](In x) {
    const std::size_t n = x.size();
    std::vector<std::size_t> counts = {0, std::min<std::size_t>(n, 1), std::min<std::size_t>(n, 3),
                                       n / 100};
    if (n <= 300) counts.insert(counts.end(), {n / 2, n - (n > 0), n});
    for (std::size_t k : counts) TopIndices(x, k);
  });
}

TEST(TopKTest, LongInputsHalfChosen) {
  for (Pattern pattern : kPatterns) TopIndices(MakeInput(pattern, 4097), 2000);
}

TEST(TopKTest, ThreadsChangeNothing) {
  FourThreads threads;
  const std::vector<float> x = MakeInput(Pattern::kTwoValues, kManyTasks);
  const Chosen one = Apply(TopK, x, 50000);
  const Chosen four = Apply(TopK, x, 50000, threads.backend());
  EXPECT_EQ(one.indices, four.indices);
  EXPECT_TRUE(SameBits(one.values, four.values));
}

TEST(TopKDeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(3);
  Indices indices(4);
  std::vector<float> values(4);
  EXPECT_DEATH(TopK(kBackend, x, indices, values), "check failed");
  EXPECT_DEATH(TopK(kBackend, x, std::span(indices).first(2), values), "check failed");
}

TEST(ScatterAddTest, AddsWeightedValues) {
  std::vector<float> y = {1, 2, 3, 4};
  ASSERT_TRUE(ScatterAdd(kBackend, Indices{0, 3}, std::vector<float>{10, 20}, -0.5F, y).ok());
  EXPECT_EQ(y, (std::vector<float>{-4, 2, 3, -6}));
  ASSERT_TRUE(ScatterAdd(kBackend, {}, {}, 1.0F, y).ok());
  EXPECT_EQ(y, (std::vector<float>{-4, 2, 3, -6}));
}

TEST(ScatterAddTest, EveryInputAsTheReferenceDoes) {
  ForEveryInput([](In x) {
    Chosen chosen = Apply(TopK, x, x.size() / 3);
    std::vector<float> y = MakeInput(Pattern::kNormal, x.size(), 5);
    std::vector<float> expected = y;
    EXPECT_TRUE(cpu::ScatterAdd(kBackend, chosen.indices, chosen.values, 0.3F, y).ok());
    EXPECT_TRUE(ref::ScatterAdd(kBackend, chosen.indices, chosen.values, 0.3F, expected).ok());
    EXPECT_TRUE(SameBits(y, expected));
  });
}

TEST(ScatterAddTest, HostileIndicesChangeNothing) {
  struct Case {
    Indices indices;
    std::size_t values;
    const char* message;
  };
  const std::vector<Case> cases = {
      {{4}, 1, "indices[0]: expected at least 0 and less than 4, found 4"},
      {{0, 0xFFFFFFFF}, 2, "indices[1]: expected at least 1 and less than 4, found 4294967295"},
      {{0, 1, 1}, 3, "indices[2]: expected at least 2 and less than 4, found 1"},
      {{0, 2, 1}, 3, "indices[2]: expected at least 3 and less than 4, found 1"},
      {{0xFFFFFFFF, 0}, 2, "indices[0]: expected at least 0 and less than 4, found 4294967295"},
      {{0, 1}, 1, "values: expected 2, as many as indices, found 1"},
      {{0}, 2, "values: expected 1, as many as indices, found 2"},
      {{0, 1, 2, 3, 4}, 5, "indices[4]: expected at least 4 and less than 4, found 4"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const std::vector<float> values(c.values, 1.0F);
    std::vector<float> y = {1, 2, 3, 4};
    const Status status = ScatterAdd(kBackend, c.indices, values, 1.0F, y);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.message(), c.message);
    EXPECT_EQ(ref::ScatterAdd(kBackend, c.indices, values, 1.0F, y).code(), Code::kCorrupt);
    EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4}));
  }
  EXPECT_EQ(ScatterAdd(kBackend, Indices{0}, std::vector<float>{1}, 1.0F, {}).code(),
            Code::kCorrupt);
}

}  // namespace
}  // namespace slimgrad::kernels
