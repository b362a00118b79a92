// The sparse additions of kernels/select.h.
#include "kernels/select.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

using Indices = std::vector<std::uint32_t>;

TEST(ScatterAddTest, AddsWeightedValues) {
  std::vector<float> y = {1, 2, 3, 4};
  ASSERT_TRUE(
      subject::ScatterAdd(kBackend, Indices{0, 3}, std::vector<float>{10, 20}, -0.5F, y).ok());
  EXPECT_EQ(y, (std::vector<float>{-4, 2, 3, -6}));
  ASSERT_TRUE(subject::ScatterAdd(kBackend, {}, {}, 1.0F, y).ok());
  EXPECT_EQ(y, (std::vector<float>{-4, 2, 3, -6}));
}

TEST(ScatterTest, WritesWeightedValuesAndZeros) {
  std::vector<float> y = {1, 2, 3, kNan};
  ASSERT_TRUE(subject::Scatter(kBackend, Indices{0, 2}, std::vector<float>{10, 0}, -0.5F, y).ok());
  EXPECT_TRUE(SameBits(y, {-5.0F, 0.0F, 0.0F, 0.0F}));
  ASSERT_TRUE(subject::Scatter(kBackend, {}, {}, 1.0F, y).ok());
  EXPECT_TRUE(SameBits(y, {0.0F, 0.0F, 0.0F, 0.0F}));
}

struct Chosen {
  Indices indices;
  std::vector<float> values;
};

Chosen Choose(In x, std::size_t k) {
  Chosen chosen = {Indices(k), std::vector<float>(k)};
  Scratch scratch;
  TopK(kBackend, scratch, x, chosen.indices, chosen.values);
  return chosen;
}

void ExpectSameScatters(const Chosen& chosen, const std::vector<float>& before, std::size_t offset,
                        const Backend& backend) {
  std::vector<float> y = before;
  std::vector<float> expected = before;
  const Out to = Out(y).subspan(offset);
  const Out expected_to = Out(expected).subspan(offset);
  EXPECT_TRUE(subject::ScatterAdd(backend, chosen.indices, chosen.values, 0.3F, to).ok());
  EXPECT_TRUE(ref::ScatterAdd(backend, chosen.indices, chosen.values, 0.3F, expected_to).ok());
  EXPECT_TRUE(SameBits(y, expected));
  EXPECT_TRUE(subject::Scatter(backend, chosen.indices, chosen.values, 0.3F, to).ok());
  EXPECT_TRUE(ref::Scatter(backend, chosen.indices, chosen.values, 0.3F, expected_to).ok());
  EXPECT_TRUE(SameBits(y, expected));
}

TEST(ScatterAddTest, EveryInputAsTheReferenceDoes) {
  FourThreads threads;
  ForEveryInput([&](In x) {
    const Chosen chosen = Choose(x, x.size() / 3);
    const std::vector<float> before = MakeInput(Pattern::kNormal, x.size() + 1, 5);
    ExpectSameScatters(chosen, before, 1, kBackend);
    ExpectSameScatters(chosen, before, 0, threads.backend());
  });
}

// Outputs that are streamed and entries that threads share, from starts within a cache line.
TEST(ScatterAddTest, LongOutputsAsTheReferenceDoes) {
  FourThreads threads;
  const std::size_t n = std::max(Streamed(), 3 * kManyTasks);
  const std::vector<float> before = MakeInput(Pattern::kNormal, n, 5);
  for (std::size_t offset : {0, 7}) {
    const In x = In(before).subspan(offset);
    ExpectSameScatters(Choose(x, n / 20), before, offset, threads.backend());
  }
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
    const Status status = subject::ScatterAdd(kBackend, c.indices, values, 1.0F, y);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(ref::ScatterAdd(kBackend, c.indices, values, 1.0F, y).code(), Code::kCorrupt);
    const Status written = subject::Scatter(kBackend, c.indices, values, 1.0F, y);
    EXPECT_EQ(written.code(), Code::kCorrupt);
    // A device only counts what it refuses.
    if (!OnCuda()) {
      EXPECT_EQ(status.message(), c.message);
      EXPECT_EQ(written.message(), c.message);
    }
    EXPECT_EQ(ref::Scatter(kBackend, c.indices, values, 1.0F, y).code(), Code::kCorrupt);
    EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4}));
  }
  EXPECT_EQ(subject::ScatterAdd(kBackend, Indices{0}, std::vector<float>{1}, 1.0F, {}).code(),
            Code::kCorrupt);
}

// One wrong index of many, which one block sees and all heed.
TEST(ScatterAddTest, OneHostileIndexOfManyChangesNothing) {
  const std::size_t n = 5000;
  const std::vector<float> values(n, 1.0F);
  const std::vector<float> before = MakeInput(Pattern::kNormal, 2 * n, 5);
  for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
    Indices indices(n);
    for (std::size_t j = 0; j < n; ++j) indices[j] = static_cast<std::uint32_t>(2 * j);
    indices[at] = at == 0 ? 2 : at == n - 1 ? static_cast<std::uint32_t>(2 * n) : 0xFFFFFFFF;
    std::vector<float> y = before;
    EXPECT_EQ(subject::ScatterAdd(kBackend, indices, values, 1.0F, y).code(), Code::kCorrupt);
    EXPECT_EQ(subject::Scatter(kBackend, indices, values, 1.0F, y).code(), Code::kCorrupt);
    EXPECT_TRUE(SameBits(y, before));
  }
}

TEST(ScatterAddTest, OnlyIfDecidesOnTheDevice) {
  for (std::uint64_t only_if : {0, 1}) {
    Backend backend;
    backend.only_if = &only_if;
    std::vector<float> y = {1, 2, 3};
    const std::vector<float> value = {10};
    EXPECT_TRUE(subject::ScatterAdd(backend, Indices{1}, value, 0.5F, y).ok());
    EXPECT_EQ(y, (std::vector<float>{1, only_if == 0 ? 2.0F : 7.0F, 3}));
    EXPECT_EQ(subject::ScatterAdd(backend, Indices{3}, value, 0.5F, y).ok(), only_if == 0);
    EXPECT_TRUE(subject::Scatter(backend, Indices{2}, value, 0.5F, y).ok());
    EXPECT_EQ(y, only_if == 0 ? (std::vector<float>{1, 2, 3}) : (std::vector<float>{0, 0, 5}));
  }
}

}  // namespace
}  // namespace slimgrad::kernels
