#include "kernels/sums.h"

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

TEST(SumsTest, Literals) {
  const std::vector<float> x = {1, 2, -3};
  const std::vector<float> y = {4, -5, 6};
  EXPECT_EQ(subject::SumSquares(kBackend, x), 14.0);
  EXPECT_EQ(subject::Dot(kBackend, x, y), -24.0);
  EXPECT_EQ(subject::SumSquaredDifferences(kBackend, x, y), 9.0 + 49.0 + 81.0);
  EXPECT_TRUE(SameDouble(subject::SumSquares(kBackend, {}), 0.0));
  EXPECT_TRUE(
      SameDouble(subject::Dot(kBackend, std::vector<float>{-0.0F}, std::vector<float>{1}), 0.0));
}

TEST(SumsTest, NeitherOverflowsNorVanishes) {
  const std::vector<float> huge(5000, 3e38F);
  const std::vector<float> minus(5000, -3e38F);
  EXPECT_NEAR(subject::SumSquares(kBackend, huge) / (5000 * 9e76), 1.0, 1e-6);
  EXPECT_NEAR(subject::SumSquaredDifferences(kBackend, huge, minus) / (5000 * 36e76), 1.0, 1e-6);
  EXPECT_GT(subject::SumSquares(kBackend, std::vector<float>{1e-45F}), 0.0);
}

// Dot of a vector with 2^53 first and 1 at `ones`: which ones survive tells the shape. 2^53 + 1
// rounds to 2^53.
double ShapeProbe(std::size_t n, const std::vector<std::size_t>& ones) {
  std::vector<float> x(n, 0.0F), y(n, 1.0F);
  x[0] = 0x1p27F;
  y[0] = 0x1p26F;
  for (std::size_t i : ones) x[i] = 1.0F;
  const double sum = subject::Dot(kBackend, x, y);
  EXPECT_TRUE(SameDouble(sum, ref::Dot(kBackend, x, y)));
  return sum - 0x1p53;
}

TEST(SumsTest, SixtyFourLanesJoinedByATree) {
  EXPECT_EQ(ShapeProbe(128, {64}), 0.0);       // same lane as the first element
  EXPECT_EQ(ShapeProbe(256, {64, 192}), 0.0);  // still: 128 lanes would keep their 2
  EXPECT_EQ(ShapeProbe(128, {32, 96}), 2.0);   // lane 32 holds 2: 32 lanes would lose it
  EXPECT_EQ(ShapeProbe(64, {32, 16}), 0.0);    // joined one after the other
  EXPECT_EQ(ShapeProbe(64, {16, 48}), 2.0);    // 48 joins 16 first
  EXPECT_EQ(ShapeProbe(64, {1, 3}), 2.0);      // 3 joins 1 first
  EXPECT_EQ(ShapeProbe(64, {1, 2}), 0.0);      // 2 joins 0, then 1 does
}

TEST(SumsTest, RunsOf4096AreAddedInOrder) {
  EXPECT_EQ(ShapeProbe(8192, {4096, 4097}), 2.0);  // the second run's sum is 2
  EXPECT_EQ(ShapeProbe(8193, {4096, 8192}), 0.0);  // two runs of 1, one after the other
  EXPECT_EQ(ShapeProbe(4096, {4032, 4095}), 0.0);  // within the first run: lanes 0 and 63
  EXPECT_EQ(ShapeProbe(4097, {4095, 4096}), 0.0);  // either side of the cut
}

// Longer than what the kernel holds of runs' sums at a time.
TEST(SumsTest, RunsAreAddedInOrderBeyondTheFirstBatch) {
  const std::size_t batch = SubjectStream() != nullptr ? 8192 : 1024;
  const std::size_t n = (batch + 1) * 4096 + 5;
  EXPECT_EQ(ShapeProbe(n, {batch * 4096, (batch + 1) * 4096}), 0.0);
  EXPECT_EQ(ShapeProbe(n, {batch * 4096, batch * 4096 + 1}), 2.0);
}

void ExpectRefAgrees(In x, const Backend& backend = kBackend) {
  const std::vector<float> y = MakeInput(Pattern::kNormal, x.size(), 9);
  EXPECT_TRUE(SameDouble(subject::SumSquares(backend, x), ref::SumSquares(kBackend, x)));
  EXPECT_TRUE(SameDouble(subject::Dot(backend, x, y), ref::Dot(kBackend, x, y)));
  EXPECT_TRUE(SameDouble(subject::SumSquaredDifferences(backend, x, y),
                         ref::SumSquaredDifferences(kBackend, x, y)));
}

TEST(SumsTest, EveryInputAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectRefAgrees(x); });
}

TEST(SumsTest, ThreadsChangeNothing) {
  FourThreads threads;
  for (Pattern pattern : {Pattern::kNormal, Pattern::kExponents})
    ExpectRefAgrees(MakeInput(pattern, kManyTasks), threads.backend());
}

TEST(SumsTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  const std::vector<float> x(5000, 1.0F);
  Backend backend;
  backend.only_if = &never;
  EXPECT_EQ(subject::SumSquares(backend, x), 0.0);
  backend.only_if = &always;
  EXPECT_EQ(subject::SumSquares(backend, x), 5000.0);
}

TEST(SumsDeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(3), y(4);
  EXPECT_DEATH(subject::Dot(kBackend, x, y), "check failed");
  EXPECT_DEATH(subject::SumSquaredDifferences(kBackend, x, y), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
