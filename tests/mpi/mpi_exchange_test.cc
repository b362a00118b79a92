// The exchange between processes: for every compressor of the conformance suite the averages,
// states and traffic of the lock-step group, bit for bit.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "comm/exchange.h"
#include "tests/conformance/harness.h"
#include "tests/mpi/world.h"

namespace slimgrad::conformance {
namespace {

constexpr int kSteps = 3;

class BetweenProcesses : public ForEverySpec {};

TEST_P(BetweenProcesses, AveragesTrafficAndStateAreThoseOfLockStep) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  const int world = WorldSize();
  const auto gradients = [&](std::uint64_t step) { return RandomGradients(tensors, world, step); };
  const auto group = MustJoin();
  const RankLog mine = RunOneRank(*group, spec(), tensors, kSteps, gradients);
  const RankLog expected = RunInLockStep(spec(), world, tensors, kSteps,
                                         gradients)[static_cast<std::size_t>(WorldRank())];
  EXPECT_EQ(mine.sent, expected.sent);
  EXPECT_EQ(mine.received, expected.received);
  EXPECT_TRUE(mine.state == expected.state);
  ASSERT_EQ(mine.averages.size(), std::size_t{kSteps});
  for (std::size_t step = 0; step < kSteps; ++step)
    for (std::size_t t = 0; t < tensors.size(); ++t)
      EXPECT_TRUE(SameBits(mine.averages[step][t], expected.averages[step][t]))
          << "step " << step << ", tensor " << t;
}

SLIMGRAD_FOR_EVERY_SPEC(BetweenProcesses);

// A step of one tensor.
Status StepOf(Exchange& exchange, In gradient, Out average) {
  const std::vector<ConstView> from = {gradient};
  const std::vector<View> to = {average};
  const std::vector<std::span<const ConstView>> from_rows = {from};
  const std::vector<std::span<const View>> to_rows = {to};
  return exchange.Step(from_rows, to_rows, {});
}

TEST(ExchangeBetweenProcesses, AMismatchNamesRankAndField) {
  if (WorldSize() == 1) return;  // nobody to differ from
  const auto group = MustJoin();
  const int odd = WorldSize() - 1;
  const bool differs = WorldRank() == odd;
  const Status status =
      Exchange::Create(*group, Make(differs ? "top_k(k=3)" : "top_k(k=2)"), UsualTensors(), {})
          .status();
  EXPECT_EQ(status.code(), Code::kMismatch);
  const std::string begin =
      "rank " + std::to_string(differs ? 0 : odd) + ": compressor spec: expected ";
  EXPECT_EQ(status.message().substr(0, begin.size()), begin) << status.message();
}

TEST(ExchangeBetweenProcesses, ARankThatLeavesWithinAStepIsNamed) {
  if (WorldSize() == 1) return;
  auto group = MustJoin();
  const std::vector<TensorSpec> tensors = Tensors({{8}});
  auto exchange = Exchange::Create(*group, Make("top_k(k=2)"), tensors, {});
  ASSERT_TRUE(exchange.ok()) << exchange.status().message();
  if (WorldRank() == 0) {
    exchange->reset();
    group.reset();
    return;
  }
  const Values gradient(8, 1.0F);
  Values average(8);
  const Status status = StepOf(**exchange, gradient, average);
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_EQ(status.message(), "rank 0 has left the group");
}

// The last rank combines for longer than the timeout, the others fail and are done with their
// exchange; then it goes on, and MPI may still ask them for what they were sending.
TEST(ExchangeBetweenProcesses, MemoryThatMpiHoldsOutlivesIt) {
  if (WorldSize() == 1) return;
  Slow slow(std::chrono::milliseconds(1200));
  MpiOptions options;
  if (IsLast()) options.backend.executor = &slow;
  const auto group = MustJoin(MPI_COMM_WORLD, std::chrono::milliseconds(500), options);
  {
    const std::vector<TensorSpec> tensors = Tensors({{1 << 20}});
    auto exchange = Exchange::Create(*group, Make("none"), tensors, {});
    ASSERT_TRUE(exchange.ok()) << exchange.status().message();
    const Values gradient(tensors[0].numel(), 1.0F);
    Values average(gradient.size());
    const Status status = StepOf(**exchange, gradient, average);
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_NE(status.message().find(LastRank() + " sent and took nothing within 500 ms"),
              std::string::npos)
        << status.message();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace slimgrad::conformance
