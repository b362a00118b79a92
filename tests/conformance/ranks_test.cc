// What holds between ranks: averages are the same everywhere and in every group, and equal
// gradients give what one rank alone would get.
#include <cmath>

#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class BetweenRanks : public ForEverySpec {};

constexpr int kSteps = 3;

TEST_P(BetweenRanks, AveragesTrafficAndStateAreTheSameInEveryGroup) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  for (int world = 1; world <= 7; ++world) {
    SCOPED_TRACE("ranks: " + std::to_string(world));
    const auto gradients = [&](std::uint64_t step) {
      return RandomGradients(tensors, world, step);
    };
    const std::vector<RankLog> lock_step = RunInLockStep(spec(), world, tensors, kSteps, gradients);
    const std::vector<RankLog> threads = RunAsThreads(spec(), world, tensors, kSteps, gradients);
    for (std::size_t rank = 0; rank < lock_step.size(); ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_EQ(threads[rank].sent, lock_step[rank].sent);
      EXPECT_EQ(threads[rank].received, lock_step[rank].received);
      EXPECT_TRUE(threads[rank].state == lock_step[rank].state);
      for (std::size_t step = 0; step < kSteps; ++step)
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          const Values& first = lock_step[0].averages[step][t];
          ASSERT_TRUE(SameBits(lock_step[rank].averages[step][t], first)) << "tensor " << t;
          ASSERT_TRUE(SameBits(threads[rank].averages[step][t], first)) << "tensor " << t;
        }
    }
  }
}

// With one row of averages only, the other ranks' states go on all the same.
TEST_P(BetweenRanks, UnwantedAveragesChangeNoState) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  Ranks every(spec(), 3, tensors), first(spec(), 3, tensors);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const Gradients gradients = RandomGradients(tensors, 3, step);
    every.MustStep(gradients);
    first.averages().resize(1);
    first.MustStep(gradients);
    for (std::size_t t = 0; t < tensors.size(); ++t)
      EXPECT_TRUE(SameBits(first.averages()[0][t], every.averages()[0][t]));
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(first.Fields(rank), every.Fields(rank));
  }
}

// The sum over n ranks rounds n - 1 times and the division once. Factors of low rank pass such
// sums through an orthonormalisation.
TEST_P(BetweenRanks, EqualGradientsGiveTheOneRankResult) {
  if (random()) return;  // RanksDrawIndependently, in traits_test.cc
  const std::vector<TensorSpec> tensors = UsualTensors();
  for (int world : {2, 3, 5, 7}) {
    Ranks one(spec(), 1, tensors), many(spec(), world, tensors);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const Gradients gradients = RandomGradients(tensors, 1, step);
      one.MustStep(gradients);
      many.MustStep(Gradients(static_cast<std::size_t>(world), gradients[0]));
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const bool rounds = one.exchange().plans()[t].rounds.size() > 1;
        double largest = 0;
        for (float value : one.averages()[0][t]) largest = std::fmax(largest, std::fabs(value));
        EXPECT_GT(largest, 0);
        const double tolerance = rounds ? 1e-4 * largest : kUnit * world * largest;
        for (std::size_t i = 0; i < tensors[t].numel(); ++i)
          ASSERT_NEAR(many.averages()[0][t][i], one.averages()[0][t][i], tolerance)
              << "ranks: " << world << ", step " << step << ", " << tensors[t].name << "[" << i
              << "]";
      }
    }
  }
}

// The average of different gradients is the mean of what each rank's payload stands for.
TEST_P(BetweenRanks, TheAverageIsTheMeanOfWhatWasSent) {
  const std::vector<TensorSpec> tensors = Tensors({{97}});
  constexpr int kWorld = 5;
  Ranks ranks(spec(), kWorld, tensors);
  const Gradients gradients = RandomGradients(tensors, kWorld, 1);
  ranks.MustStep(gradients);
  const WireRounding wire = RoundingOf(ranks.exchange().plans()[0]);
  std::vector<double> mean(97), magnitude(97);
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    OneRank alone(Make(spec()), tensors[0], rank, 0);
    const Values sent = alone.Step(gradients[rank][0]);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      mean[i] += static_cast<double>(sent[i]) / kWorld;
      magnitude[i] += std::fabs(sent[i]);
    }
  }
  for (std::size_t i = 0; i < mean.size(); ++i)
    ASSERT_NEAR(ranks.averages()[0][0][i], mean[i],
                kUnit * kWorld * magnitude[i] + wire.relative * std::fabs(mean[i]) + wire.absolute)
        << "element " << i;
}

SLIMGRAD_FOR_EVERY_SPEC(BetweenRanks);

}  // namespace
}  // namespace slimgrad::conformance
