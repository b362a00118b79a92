// Every shape works, padding enters nothing, and a tensor that goes dense says so.
#include <cmath>

#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class EveryShape : public ForEverySpec {};

std::vector<TensorSpec> AllShapes() {
  return Tensors({{},      {0},    {0, 5},  {5, 0},  {1},     {2},       {3},       {7},
                  {8},     {63},   {64},    {65},    {97},    {251},     {1, 1},    {1, 17},
                  {17, 1}, {2, 2}, {7, 13}, {13, 7}, {32, 9}, {3, 5, 7}, {2, 1, 9}, {1, 0, 3}});
}

TEST_P(EveryShape, GivesFiniteAveragesOfItsOwnSize) {
  const std::vector<TensorSpec> tensors = AllShapes();
  for (int world : {1, 3}) {
    Ranks ranks(spec(), world, tensors);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Gradients gradients = RandomGradients(tensors, world, step);
      ranks.MustStep(gradients);
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        ASSERT_TRUE(AllFinite(ranks.averages()[0][t])) << ShapeText(tensors[t].shape);
        if (ranks.exchange().plans()[t].traits.exact && world == 1) {
          EXPECT_TRUE(SameBits(ranks.averages()[0][t], gradients[0][t]))
              << ShapeText(tensors[t].shape);
        }
      }
    }
  }
}

// Nothing is added and nothing is left out: a decoded tensor is never further from x than x is
// from zero, up to the rounding of codes (stochastic ones may add up to a whole step, 1/127 of the
// largest element, each).
TEST_P(EveryShape, StaysWithinReachOfTheInput) {
  for (const TensorSpec& tensor : AllShapes()) {
    OneRank rank(Make(spec()), tensor);
    const Values x = RandomValues(tensor.numel(), 2);
    const Values y = rank.Step(x);
    double error = 0, norm = 0, largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      error += std::pow(static_cast<double>(y[i]) - static_cast<double>(x[i]), 2);
      norm += std::pow(static_cast<double>(x[i]), 2);
      largest = std::fmax(largest, std::fabs(x[i]));
    }
    const double steps = static_cast<double>(x.size()) * std::pow(largest / 127, 2);
    EXPECT_LE(error, norm * (1 + 1e-6) + steps) << ShapeText(tensor.shape);
  }
}

// Zeros behind the elements of a block must not count as elements: a constant tensor has one
// magnitude, so every method decodes its kept elements to exactly that.
TEST_P(EveryShape, ConstantsKeepTheirMagnitude) {
  for (const TensorSpec& tensor : AllShapes()) {
    OneRank rank(Make(spec()), tensor);
    for (float value : rank.Step(Values(tensor.numel(), 0.5F)))
      EXPECT_TRUE(value == 0.0F || std::fabs(value - 0.5F) < 1e-5F)
          << ShapeText(tensor.shape) << ": " << value;
  }
}

// Contract: nothing travels uncompressed without a word.
TEST_P(EveryShape, DenseTensorsSayWhy) {
  if (spec() == "none") return;
  std::vector<TensorSpec> tensors = AllShapes();
  tensors.push_back({"large", {40, 50}, DType::kF32});
  for (const TensorSpec& tensor : tensors) {
    const Plan plan = *Make(spec()).MakePlan(tensor);
    const Round& first = plan.rounds[0];
    const bool dense = plan.rounds.size() == 1 && first.kind == Round::Kind::kCombine &&
                       first.dtype == DType::kF32 && first.count == tensor.numel();
    EXPECT_EQ(dense, !plan.dense_reason.empty())
        << ShapeText(tensor.shape) << ": '" << plan.dense_reason << "'";
  }
}

// More elements than 32 bits count: planned in 64 bits, or refused before any work.
TEST_P(EveryShape, OfEightBillionElementsIsPlannedOrRefused) {
  const TensorSpec tensor = {"huge", {std::int64_t{1} << 17, std::int64_t{1} << 16}, DType::kF32};
  const Result<Plan> plan = Make(spec()).MakePlan(tensor);
  if (!plan.ok()) {
    EXPECT_EQ(plan.status().code(), Code::kUnsupported);
    EXPECT_NE(
        plan.status().message().find("'huge': expected at most 2^32 elements, found 8589934592"),
        std::string::npos)
        << plan.status().message();
    return;
  }
  const Round& round = plan->rounds[0];
  const bool factors = plan->rounds.size() > 1;
  EXPECT_GT(round.bound + round.count * SizeOf(round.dtype),
            factors ? 1U << 17 : tensor.numel() / 8);
}

SLIMGRAD_FOR_EVERY_SPEC(EveryShape);

TEST(DenseReason, SaysWhatIsTheMatter) {
  const auto reason = [](const char* spec, std::vector<std::int64_t> shape) {
    return Make(spec).MakePlan({"t", std::move(shape), DType::kF32})->dense_reason;
  };
  EXPECT_EQ(reason("power_sgd(rank=2)", {100}), "not a matrix");
  EXPECT_EQ(reason("power_sgd(rank=2)", {3, 3}), "factors would not be smaller");
  EXPECT_EQ(reason("power_sgd(rank=2)", {10, 10}), "");
  EXPECT_EQ(reason("error_feedback(power_sgd(rank=2))", {100}), "not a matrix");
  EXPECT_EQ(reason("small_tensors(top_k,below=10)", {9}), "fewer than 10 elements");
  EXPECT_EQ(reason("small_tensors(top_k,below=10)", {10}), "");
  EXPECT_EQ(reason("small_tensors(top_k,below=10,use=fp16)", {9}), "");
  EXPECT_EQ(reason("none", {9}), "");
}

}  // namespace
}  // namespace slimgrad::conformance
