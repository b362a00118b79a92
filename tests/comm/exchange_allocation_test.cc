// Steady-state steps take nothing from the heap.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/comm/exchange_fixture.h"
#include "tests/comm/ranks.h"
#include "tests/core/allocations.h"

namespace slimgrad {
namespace {

const std::vector<TensorSpec> kTensors = {{"w", {40, 30}}, {"b", {30}}, {"s", {}}};

class ExchangeAllocation : public testing::TestWithParam<std::string> {};

TEST_P(ExchangeAllocation, SteadyStepsMakeNone) {
  for (const Kind kind : kKinds)
    RunRanks(kind, 3, [](Group& group) {
      auto exchange = MustCreate(group, GetParam(), kTensors);
      ASSERT_NE(exchange, nullptr);
      Worker worker(group, kTensors);
      for (int warm_up = 0; warm_up < 3; ++warm_up) ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
      const std::uint64_t before = AllocationsOfThisThread();
      for (int step = 0; step < 4; ++step) ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
      EXPECT_EQ(AllocationsOfThisThread() - before, 0U);
    });
}

std::vector<std::string> Specs() {
  std::vector<std::string> specs = {"error_feedback(power_sgd(rank=2))",
                                    "error_feedback(top_k(ratio=0.1)|delta_index|fp16_values)",
                                    "small_tensors(error_feedback(one_bit),below=50,use=fp16)"};
  for (const Method* method : Methods()) specs.push_back(method->example);
  return specs;
}

INSTANTIATE_TEST_SUITE_P(Specs, ExchangeAllocation, testing::ValuesIn(Specs()),
                         [](const auto& test) { return "spec_" + std::to_string(test.index); });

TEST(Allocations, AreCounted) {
  const std::uint64_t before = AllocationsOfThisThread();
  LockStepGroup group(2);
  EXPECT_NE(MustCreate(group, "none", kTensors), nullptr);
  EXPECT_GT(AllocationsOfThisThread(), before);
}

}  // namespace
}  // namespace slimgrad
