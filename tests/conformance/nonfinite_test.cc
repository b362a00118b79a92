// A gradient that is not finite: no rank's state moves, no average is written, rank and tensor are
// named, and the next step is a step again.
#include <chrono>
#include <limits>
#include <thread>

#include "comm/threads_group.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

constexpr int kWorld = 3;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class NonFiniteSteps : public ForEverySpec {};

// A bad value in the last element of the last rank's last tensor.
Gradients WithBad(Gradients gradients, float bad) {
  gradients.back().back().back() = bad;
  return gradients;
}

TEST_P(NonFiniteSteps, LeaveEverythingUntouched) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  Ranks ranks(spec(), kWorld, tensors);
  ranks.MustStep(RandomGradients(tensors, kWorld, 0));
  std::uint64_t step = 1;
  for (float bad : {kNan, kInf, -kInf}) {
    std::vector<std::vector<StateField>> before;
    for (int rank = 0; rank < kWorld; ++rank) before.push_back(ranks.Fields(rank));
    for (Row& row : ranks.averages())
      for (Values& average : row) average.assign(average.size(), 123.0F);

    const Status status = ranks.Step(WithBad(RandomGradients(tensors, kWorld, step), bad));
    ASSERT_TRUE(status.ok()) << status.message();
    const StepReport& report = ranks.exchange().report();
    EXPECT_TRUE(report.skipped);
    EXPECT_EQ(report.skip_reason, "rank 2: gradient of tensor 't3' is not finite");
    EXPECT_EQ(report.step, step);
    EXPECT_EQ(report.payload_bytes, 0U);
    EXPECT_EQ(ranks.exchange().next_step(), ++step);
    for (int rank = 0; rank < kWorld; ++rank)
      EXPECT_EQ(ranks.Fields(rank), before[static_cast<std::size_t>(rank)]);
    for (const Row& row : ranks.averages())
      for (const Values& average : row) EXPECT_EQ(average, Values(average.size(), 123.0F));
  }
  ranks.MustStep(RandomGradients(tensors, kWorld, step));
}

// The skipped step counts as a step: what follows draws the random bits of its own number.
TEST_P(NonFiniteSteps, LaterStepsAreThoseOfTheirNumber) {
  const std::vector<TensorSpec> tensors = Tensors({{97}});
  Ranks skipped(spec(), 1, tensors);
  Ranks zero(spec(), 1, tensors);
  EXPECT_TRUE(skipped.Step({{Values(97, kNan)}}).ok());
  zero.MustStep({{Values(97, 0.0F)}});  // leaves nothing behind either
  const Gradients gradients = RandomGradients(tensors, 1, 5);
  skipped.MustStep(gradients);
  zero.MustStep(gradients);
  EXPECT_TRUE(SameBits(skipped.averages()[0][0], zero.averages()[0][0]));
}

TEST_P(NonFiniteSteps, TrustedDoesNotLook) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  Ranks ranks(spec(), kWorld, tensors, {.nonfinite = NonFinite::kTrusted});
  ranks.MustStep(RandomGradients(tensors, kWorld, 0));
  ranks.MustStep(WithBad(RandomGradients(tensors, kWorld, 1), kInf));  // fails if it is skipped
  EXPECT_EQ(ranks.exchange().report().traffic.finite_check.SentByAll(), 0U);
}

TEST_P(NonFiniteSteps, AreAgreedByIndependentRanks) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  auto groups = MakeThreadsGroups(kWorld, std::chrono::seconds(60));
  const Gradients gradients = WithBad(RandomGradients(tensors, kWorld, 0), kNan);
  const auto run = [&](std::size_t rank) {
    auto exchange = Exchange::Create(*groups[rank], Make(spec()), tensors, {});
    ASSERT_TRUE(exchange.ok()) << exchange.status().message();
    Row averages;
    for (const TensorSpec& tensor : tensors) averages.emplace_back(tensor.numel(), 123.0F);
    const std::vector<ConstView> from(gradients[rank].begin(), gradients[rank].end());
    const std::vector<View> to(averages.begin(), averages.end());
    const std::vector<std::span<const ConstView>> from_rows = {from};
    const std::vector<std::span<const View>> to_rows = {to};
    EXPECT_TRUE((*exchange)->Step(from_rows, to_rows, {}).ok());
    EXPECT_TRUE((*exchange)->report().skipped);
    EXPECT_EQ((*exchange)->report().skip_reason, "rank 2: gradient of tensor 't3' is not finite");
    for (const Values& average : averages) EXPECT_EQ(average, Values(average.size(), 123.0F));
  };
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < kWorld; ++rank) threads.emplace_back(run, rank);
}

SLIMGRAD_FOR_EVERY_SPEC(NonFiniteSteps);

}  // namespace
}  // namespace slimgrad::conformance
