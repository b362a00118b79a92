#include "kernels/select.h"

#include "kernels/elementwise.h"
#include "kernels/select_sample.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

using Indices = std::vector<std::uint32_t>;

struct Chosen {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

template <class Function>
Chosen Apply(Function function, In x, std::size_t k, const Backend& backend = kBackend) {
  Chosen chosen = {std::vector<std::uint32_t>(k), std::vector<float>(k)};
  Scratch scratch;
  function(backend, scratch, x, std::span<std::uint32_t>(chosen.indices), Out(chosen.values));
  return chosen;
}

struct Fed {
  Chosen chosen;
  std::vector<float> residual;
};

template <class Function>
Fed ApplyFeedback(Function function, In x, std::vector<float> residual, std::size_t k,
                  const Backend& backend = kBackend) {
  Fed fed = {{}, std::move(residual)};
  fed.chosen =
      Apply([&](const Backend& b, Scratch& scratch, In in, std::span<std::uint32_t> indices,
                Out values) { function(b, scratch, in, Out(fed.residual), indices, values); },
            x, k, backend);
  return fed;
}

void ExpectSame(const Chosen& chosen, const Chosen& expected) {
  EXPECT_TRUE(SameBits(chosen.indices, expected.indices));
  EXPECT_TRUE(SameBits(chosen.values, expected.values));
}

// One thread and four; a GPU has no such choice.
std::vector<Backend> Both(const Backend& threads) {
  if (OnCuda()) return {kBackend};
  return {kBackend, threads};
}

void ExpectRefAgrees(In x, std::size_t k, const Backend& threads) {
  SCOPED_TRACE("k = " + std::to_string(k));
  const Chosen expected = Apply(ref::TopK, x, k);
  for (const Backend& backend : Both(threads))
    ExpectSame(Apply(subject::TopK, x, k, backend), expected);
}

void ExpectRefAgreesWithFeedback(In x, const std::vector<float>& residual, std::size_t k,
                                 const Backend& threads) {
  SCOPED_TRACE("feedback, k = " + std::to_string(k));
  const Fed expected = ApplyFeedback(ref::TopKFeedback, x, residual, k);
  std::vector<float> sum = residual;
  AddSaturated(kBackend, x, sum);
  for (const Backend& backend : Both(threads)) {
    const Fed fed = ApplyFeedback(subject::TopKFeedback, x, residual, k, backend);
    ExpectSame(fed.chosen, expected.chosen);
    EXPECT_TRUE(SameBits(fed.residual, expected.residual));
    if (!OnCuda()) ExpectSame(Apply(subject::TopK, sum, k, backend), expected.chosen);
  }
}

// With a residual that keeps the ties of x, and with one that makes large sums overflow.
void ExpectRefAgreesEitherWay(In x, std::size_t k, const Backend& threads) {
  ExpectRefAgrees(x, k, threads);
  ExpectRefAgreesWithFeedback(x, std::vector<float>(x.size(), 0.0F), k, threads);
  ExpectRefAgreesWithFeedback(x, {x.rbegin(), x.rend()}, k, threads);
}

std::vector<std::uint32_t> TopIndices(In x, std::size_t k) {
  const Chosen chosen = Apply(subject::TopK, x, k);
  const Chosen expected = Apply(ref::TopK, x, k);
  EXPECT_EQ(chosen.indices, expected.indices);
  EXPECT_TRUE(SameBits(chosen.values, expected.values));
  return chosen.indices;
}

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
  EXPECT_TRUE(SameBits(Apply(subject::TopK, x, 2).values, {-0.0F, +0.0F}));
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
  EXPECT_EQ(Apply(subject::TopK, x, 1).indices, Indices{2});
  EXPECT_EQ(Apply(subject::TopK, x, 2).indices, (Indices{0, 2}));
}

TEST(TopKTest, EveryInputAsTheReferenceDoes) {
  FourThreads threads;
  std::size_t turn = 0;
  ForEveryInput([&](In x) {
    const std::size_t n = x.size();
    std::vector<std::size_t> counts = {0, std::min<std::size_t>(n, 1), std::min<std::size_t>(n, 3),
                                       n / 100};
    if (n <= 300) counts.insert(counts.end(), {n / 2, n - (n > 0), n});
    if (OnCuda()) counts = {counts[++turn % counts.size()]};
    for (std::size_t k : counts) ExpectRefAgreesEitherWay(x, k, threads.backend());
  });
}

// From which on a sample is taken.
std::size_t LeastSampled() { return (OnCuda() ? cuda::kDirectElements : cpu::kDirectElements) + 1; }

// For each thread, or block, to have some of the work.
std::size_t ManyTasks() { return OnCuda() ? 9 * 4096 + 1001 : kManyTasks; }

// Lists, second passes, ties at every bound, all chosen.
TEST(TopKTest, LongInputsAsTheReferenceDoes) {
  FourThreads threads;
  for (Pattern pattern : kPatterns) {
    for (std::size_t n : {LeastSampled(), ManyTasks()}) {
      SCOPED_TRACE(std::string(NameOf(pattern)) + ", n = " + std::to_string(n));
      const std::vector<float> memory = MakeInput(pattern, n + 1);
      const In x = In(memory).subspan(1);
      const std::vector<float> zeros(n, 0.0F);
      for (std::size_t k : {std::size_t{1}, n / 10, n / 2, n})
        ExpectRefAgreesWithFeedback(x, zeros, k, threads.backend());
      ExpectRefAgreesEitherWay(x, n / 100, threads.backend());
      if (HasFailure()) return;
    }
  }
}

// All that is chosen lies in few stripes, whose lists have no room for it. More tiles than blocks.
TEST(TopKTest, ListsThatOverflowChangeNothing) {
  FourThreads threads;
  const std::size_t n = std::size_t{1} << 19;
  const std::vector<float> x = MakeInput(Pattern::kSorted, n);
  for (std::size_t k : {n / 10, n / 3})
    ExpectRefAgreesWithFeedback(x, std::vector<float>(n, 0.0F), k, threads.backend());
}

TEST(TopKTest, FeedbackIsItsThreePasses) {
  FourThreads threads;
  const std::vector<float> x = MakeInput(Pattern::kNormal, ManyTasks(), 1);
  const std::vector<float> before = MakeInput(Pattern::kNormal, ManyTasks(), 2);
  for (std::size_t k : {std::size_t{0}, std::size_t{50}, std::size_t{1000}, x.size() / 2}) {
    const Fed fed = ApplyFeedback(subject::TopKFeedback, x, before, k, threads.backend());
    std::vector<float> residual = before;
    AddSaturated(kBackend, x, residual);
    const Chosen chosen = Apply(subject::TopK, residual, k);
    ASSERT_TRUE(subject::ScatterAdd(kBackend, chosen.indices, chosen.values, -1.0F, residual).ok());
    ExpectSame(fed.chosen, chosen);
    EXPECT_TRUE(SameBits(fed.residual, residual));
  }
}

TEST(TopKTest, LiteralFeedback) {
  const Fed fed =
      ApplyFeedback(subject::TopKFeedback, std::vector<float>{1, -2, 3, kMaxFloat, -0.0F},
                    {0.5F, -0.5F, -3, kMaxFloat, -0.0F}, 2);
  EXPECT_EQ(fed.chosen.indices, (Indices{1, 3}));
  EXPECT_TRUE(SameBits(fed.chosen.values, {-2.5F, kMaxFloat}));
  EXPECT_TRUE(SameBits(fed.residual, {1.5F, 0.0F, 0.0F, 0.0F, -0.0F}));
}

// Whether the sample of n elements has element i.
std::vector<bool> Sampled(std::size_t n) {
  std::vector<bool> sampled(n, false);
  if (OnCuda()) {
    for (std::size_t s = 0; s < cuda::kSample; ++s) sampled.at(cuda::SamplePlace(n, s)) = true;
    return sampled;
  }
  for (std::size_t block = 0; block < cpu::SampleBlocks(n); ++block)
    for (std::size_t j = 0; j < cpu::kSampleBlock; ++j)
      sampled.at(cpu::SampleBlockBegin(n, block) + j) = true;
  return sampled;
}

TEST(TopKTest, SamplesLieWithinTheTensorAndApart) {
  for (std::size_t n : {LeastSampled(), kManyTasks, Streamed()}) {
    const std::vector<bool> sampled = Sampled(n);
    EXPECT_EQ(static_cast<std::size_t>(std::count(sampled.begin(), sampled.end(), true)),
              OnCuda() ? cuda::kSample : cpu::SampleBlocks(n) * cpu::kSampleBlock);
  }
  const std::size_t most = std::size_t{1} << 32;
  EXPECT_LE(cpu::SampleBlockBegin(most, cpu::SampleBlocks(most) - 1), most - cpu::kSampleBlock);
  EXPECT_LT(cuda::SamplePlace(most, cuda::kSample - 1), most);
}

// Inputs that show the sample something else than there is. The bounds are wrong then, lists
// overflow, and the residual has been cleared where it must not be.
TEST(TopKTest, MisledSamplesChangeNothing) {
  FourThreads threads;
  const std::size_t n = ManyTasks();
  const std::vector<bool> sampled = Sampled(n);
  const auto expect = [&](const char* what, auto shown, auto hidden) {
    SCOPED_TRACE(what);
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = sampled[i] ? shown(i) : hidden(i);
    for (std::size_t k : {std::size_t{1}, n / 100, n / 10, n / 2})
      ExpectRefAgreesWithFeedback(x, std::vector<float>(n, 0.0F), k, threads.backend());
  };
  const std::vector<float> normal = MakeInput(Pattern::kNormal, n);
  const auto value = [&](std::size_t i) { return normal[i]; };
  const auto larger = [&](std::size_t i) { return 3 * normal[i]; };
  const auto smaller = [&](std::size_t i) { return 0.01F * normal[i]; };
  const auto zero = [](std::size_t) { return 0.0F; };
  const auto one = [](std::size_t) { return 1.0F; };
  expect("zeros", zero, value);
  expect("ones", one, value);
  expect("smaller values", value, larger);
  expect("larger values", value, smaller);
  expect("larger values, zeros else", value, zero);
  expect("zeros, ones else", zero, one);
  expect("values, ones else", value, one);
}

// The NaN of the largest magnitude that there is, seldom and as often as the k-th is one itself.
TEST(TopKTest, TheLastOfNansIsAMagnitudeLikeOthers) {
  FourThreads threads;
  const std::size_t n = ManyTasks();
  for (std::size_t one_of : {std::size_t{1}, std::size_t{3}, std::size_t{50}, n}) {
    SCOPED_TRACE("one of " + std::to_string(one_of));
    std::vector<float> x = MakeInput(Pattern::kNormal, n);
    for (std::size_t i = 0; i < n; i += one_of) x[i] = FromBits(i % 2 == 0 ? 0x7FFFFFFF : ~0U);
    for (std::size_t k : {std::size_t{1}, n / 100, n / 2})
      ExpectRefAgreesWithFeedback(x, std::vector<float>(n, 0.0F), k, threads.backend());
  }
}

TEST(TopKDeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(3);
  Indices indices(4);
  std::vector<float> values(4);
  Scratch scratch;
  std::uint64_t found = 0;
  EXPECT_DEATH(subject::TopK(kBackend, scratch, x, indices, values), "check failed");
  EXPECT_DEATH(subject::TopK(kBackend, scratch, x, std::span(indices).first(2), values),
               "check failed");
  EXPECT_DEATH(subject::TopKFeedback(kBackend, scratch, x, values, std::span(indices).first(2),
                                     Out(values).first(2)),
               "check failed");
  EXPECT_DEATH(subject::ThresholdSelect(kBackend, scratch, x, 1.0F, std::span(indices).first(2),
                                        values, &found),
               "check failed");
  EXPECT_DEATH(subject::ThresholdSelect(kBackend, scratch, x, -1.0F, indices, values, &found),
               "check failed");
  EXPECT_DEATH(subject::ThresholdSelect(kBackend, scratch, x, kNan, indices, values, &found),
               "check failed");
}

// What there was room for; the count of all in `found`.
template <class Function>
Chosen ApplyThreshold(Function function, In x, float threshold, std::size_t room,
                      std::uint64_t* found, const Backend& backend = kBackend) {
  Chosen chosen =
      Apply([&](const Backend& b, Scratch& scratch, In in, std::span<std::uint32_t> indices,
                Out values) { function(b, scratch, in, threshold, indices, values, found); },
            x, room, backend);
  chosen.indices.resize(std::min<std::size_t>(*found, room));
  chosen.values.resize(std::min<std::size_t>(*found, room));
  return chosen;
}

void ExpectRefAgreesOnThreshold(In x, float threshold, std::size_t room, const Backend& threads) {
  SCOPED_TRACE("threshold " + std::to_string(threshold) + ", room " + std::to_string(room));
  std::uint64_t all = 0;
  const Chosen expected = ApplyThreshold(ref::ThresholdSelect, x, threshold, room, &all);
  for (const Backend& backend : Both(threads)) {
    std::uint64_t found = 0;
    ExpectSame(ApplyThreshold(subject::ThresholdSelect, x, threshold, room, &found, backend),
               expected);
    EXPECT_EQ(found, all);
  }
}

TEST(ThresholdSelectTest, Literals) {
  const std::vector<float> x = {1, -2, 0.0F, 2, -0.0F, 3, FromBits(0x3FFFFFFF)};
  std::uint64_t found = 0;
  EXPECT_EQ(ApplyThreshold(subject::ThresholdSelect, x, 2.0F, 7, &found).indices,
            (Indices{1, 3, 5}));
  EXPECT_EQ(found, 3U);
  EXPECT_TRUE(
      SameBits(ApplyThreshold(subject::ThresholdSelect, x, 2.0F, 2, &found).values, {-2.0F, 2.0F}));
  EXPECT_EQ(found, 3U);
  EXPECT_EQ(ApplyThreshold(subject::ThresholdSelect, x, 0.0F, 9, &found).indices,
            (Indices{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(found, 7U);
  EXPECT_EQ(ApplyThreshold(subject::ThresholdSelect, x, -0.0F, 9, &found).indices.size(), 7U);
  EXPECT_EQ(ApplyThreshold(subject::ThresholdSelect, x, kInf, 7, &found).indices, Indices{});
  EXPECT_EQ(ApplyThreshold(subject::ThresholdSelect, {}, 0.0F, 0, &found).indices, Indices{});
}

TEST(ThresholdSelectTest, EveryInputAsTheReferenceDoes) {
  FourThreads threads;
  ForEveryInput([&](In x) {
    for (float threshold : {0.0F, 1e-44F, 0.375F, 1.0F, 2.0F, 3e38F})
      for (std::size_t room : {x.size(), x.size() / 3})
        ExpectRefAgreesOnThreshold(x, threshold, room, threads.backend());
  });
}

TEST(ThresholdSelectTest, LongInputsAsTheReferenceDoes) {
  FourThreads threads;
  for (Pattern pattern : kPatterns) {
    SCOPED_TRACE(NameOf(pattern));
    const std::vector<float> x = MakeInput(pattern, ManyTasks());
    for (float threshold : {0.0F, 0.375F, 60000.0F})
      for (std::size_t room : {x.size(), x.size() / 10})
        ExpectRefAgreesOnThreshold(x, threshold, room, threads.backend());
  }
}

// What a call that is to have an effect, or none, leaves in memory.
template <class Call, class Reference>
void ExpectHeeded(Call call, Reference reference, In x) {
  for (std::uint64_t only_if : {0, 1}) {
    Backend backend;
    backend.only_if = &only_if;
    Scratch scratch;
    Fed fed = {{{1, 5, 9}, {5, 6, 7}}, std::vector<float>(x.size(), 0.5F)};
    Fed expected = fed;
    call(backend, scratch, fed);
    if (only_if != 0) reference(kBackend, scratch, expected);
    ExpectSame(fed.chosen, expected.chosen);
    EXPECT_TRUE(SameBits(fed.residual, expected.residual));
  }
}

// Of a length with a sample, and of one without.
TEST(TopKTest, OnlyIfDecidesOnTheDevice) {
  for (std::size_t n : {std::size_t{100}, LeastSampled()}) {
    const std::vector<float> x = MakeInput(Pattern::kNormal, n);
    const auto expect = [&](auto subject, auto reference) {
      const auto with = [&](auto function) {
        return [&x, function](const Backend& backend, Scratch& scratch, Fed& fed) {
          function(backend, scratch, In(x), Out(fed.residual),
                   std::span<std::uint32_t>(fed.chosen.indices), Out(fed.chosen.values));
        };
      };
      ExpectHeeded(with(subject), with(reference), x);
    };
    expect(subject::TopKFeedback, ref::TopKFeedback);
    const auto top_k = [](auto function) {
      return [function](const Backend& backend, Scratch& scratch, In in, Out,
                        std::span<std::uint32_t> indices,
                        Out values) { function(backend, scratch, in, indices, values); };
    };
    expect(top_k(subject::TopK), top_k(ref::TopK));
  }
}

TEST(ThresholdSelectTest, OnlyIfDecidesOnTheDevice) {
  const std::vector<float> x = {1, 2, 3};
  for (std::uint64_t only_if : {0, 1}) {
    Backend backend;
    backend.only_if = &only_if;
    std::uint64_t found = 77;
    Chosen chosen = {{8}, {9.0F}};
    Scratch scratch;
    subject::ThresholdSelect(backend, scratch, x, 2.0F, chosen.indices, chosen.values, &found);
    EXPECT_EQ(found, only_if == 0 ? 77U : 2U);
    EXPECT_EQ(chosen.indices[0], only_if == 0 ? 8U : 1U);
    EXPECT_EQ(chosen.values[0], only_if == 0 ? 9.0F : 2.0F);
  }
}

}  // namespace
}  // namespace slimgrad::kernels
