// Same gradients, spec, seed and step: the same payloads, states and averages, on any number of
// threads, run again, in any company.
#include "core/executor.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class Determinism : public ForEverySpec {};

constexpr int kSteps = 3;

// More elements than one task of a kernel takes, so that threads share the work.
std::vector<TensorSpec> LargeTensors() { return Tensors({{300, 240}, {40000}, {9}}); }

ExchangeOptions On(Executor& executor) { return {.seed = 11, .backend = {.executor = &executor}}; }

TEST_P(Determinism, ThreadsAndRerunsChangeNothing) {
  const std::vector<TensorSpec> tensors = LargeTensors();
  const auto gradients = [&](std::uint64_t step) { return RandomGradients(tensors, 2, step); };
  PoolExecutor four(4);
  const auto run = [&](Executor& executor) {
    return RunInLockStep(spec(), 2, tensors, kSteps, gradients, On(executor));
  };
  const std::vector<RankLog> first = run(InlineExecutor());
  for (const std::vector<RankLog>& other : {run(InlineExecutor()), run(four)})
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      EXPECT_TRUE(other[rank].state == first[rank].state);
      EXPECT_EQ(other[rank].payload_bytes, first[rank].payload_bytes);
      for (std::size_t step = 0; step < kSteps; ++step)
        for (std::size_t t = 0; t < tensors.size(); ++t)
          EXPECT_TRUE(SameBits(other[rank].averages[step][t], first[rank].averages[step][t]))
              << "step " << step << ", tensor " << t;
    }
}

TEST_P(Determinism, PayloadBytesAreTheSameOnFourThreads) {
  PoolExecutor four(4);
  for (const TensorSpec& tensor : LargeTensors()) {
    OneRank alone(Make(spec()), tensor, 3);
    OneRank threads(Make(spec()), tensor, 3, 1, {.executor = &four});
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const Values x = RandomValues(tensor.numel(), step);
      EXPECT_TRUE(SameBits(alone.Step(x), threads.Step(x)));
      EXPECT_TRUE(alone.payloads() == threads.payloads()) << "step " << step;
    }
    EXPECT_EQ(FieldsOf(alone.state()), FieldsOf(threads.state()));
  }
}

// Nothing leaks from tensor to tensor: a tensor's result is the same alone and among others, which
// are of other sizes and contents.
TEST_P(Determinism, ATensorDoesNotDependOnItsNeighbours) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  Ranks together(spec(), 2, tensors);
  std::vector<std::unique_ptr<Ranks>> alone;
  for (const TensorSpec& tensor : tensors)
    alone.push_back(std::make_unique<Ranks>(spec(), 2, std::vector{tensor}));
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const Gradients gradients = RandomGradients(tensors, 2, step);
    together.MustStep(gradients);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      alone[t]->MustStep({{gradients[0][t]}, {gradients[1][t]}});
      EXPECT_TRUE(SameBits(alone[t]->averages()[0][0], together.averages()[0][t]))
          << "tensor " << t;
    }
  }
}

// The gradients are the caller's: nobody writes there.
TEST_P(Determinism, GradientsStayAsTheyWere) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  Ranks ranks(spec(), 3, tensors);
  const Gradients gradients = RandomGradients(tensors, 3, 1), copy = gradients;
  ranks.MustStep(gradients);
  for (std::size_t rank = 0; rank < gradients.size(); ++rank)
    for (std::size_t t = 0; t < tensors.size(); ++t)
      EXPECT_TRUE(SameBits(gradients[rank][t], copy[rank][t]));
}

SLIMGRAD_FOR_EVERY_SPEC(Determinism);

}  // namespace
}  // namespace slimgrad::conformance
