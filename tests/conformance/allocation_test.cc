// Steady-state steps allocate nothing on the heap.
#include "tests/conformance/harness.h"
#include "tests/core/allocations.h"

namespace slimgrad::conformance {
namespace {

class Allocations : public ForEverySpec {};

// Steps 3 to 5 with everything that a step needs made before.
std::uint64_t AllocationsIn(const std::string& spec, const std::vector<TensorSpec>& tensors) {
  constexpr int kWorld = 3;
  Ranks ranks(spec, kWorld, tensors);
  for (std::uint64_t step = 0; step < 3; ++step)
    ranks.MustStep(RandomGradients(tensors, kWorld, step));
  std::vector<Gradients> later;
  for (std::uint64_t step = 3; step < 6; ++step)
    later.push_back(RandomGradients(tensors, kWorld, step));
  std::uint64_t allocations = 0;
  for (const Gradients& gradients : later) {
    std::vector<std::vector<ConstView>> from;
    std::vector<std::vector<View>> to;
    for (const Row& row : gradients) from.emplace_back(row.begin(), row.end());
    for (Row& row : ranks.averages()) to.emplace_back(row.begin(), row.end());
    const std::vector<std::span<const ConstView>> from_rows(from.begin(), from.end());
    const std::vector<std::span<const View>> to_rows(to.begin(), to.end());
    const std::uint64_t before = AllocationsOfThisThread();
    const Status status = ranks.exchange().Step(from_rows, to_rows, {});
    allocations += AllocationsOfThisThread() - before;
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return allocations;
}

TEST(Counting, Counts) {
  const std::uint64_t before = AllocationsOfThisThread();
  std::vector<int>* volatile escapes = new std::vector<int>(100);
  delete escapes;
  EXPECT_EQ(AllocationsOfThisThread() - before, 2U);
}

TEST_P(Allocations, NoneInSteadyState) { EXPECT_EQ(AllocationsIn(spec(), UsualTensors()), 0U); }

TEST_P(Allocations, NoneInSteadyStateUnderErrorFeedback) {
  if (HasErrorFeedback(spec())) return;  // measured above
  EXPECT_EQ(AllocationsIn("error_feedback(" + spec() + ")", UsualTensors()), 0U);
}

SLIMGRAD_FOR_EVERY_SPEC(Allocations);

}  // namespace
}  // namespace slimgrad::conformance
