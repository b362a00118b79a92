// Claims that a plan makes about one rank's x -> x_hat: exact, fixed_size, unbiased, contractive.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class TraitsHold : public ForEverySpec {};

struct Input {
  std::string name;
  Values values;
};

// Inputs that are hard for someone: nothing stands out, all but one are zero, one is huge, levels
// differ by block, half of a rounding step everywhere, large values far apart.
std::vector<Input> HardInputs(std::size_t n) {
  std::vector<Input> inputs = {
      {"equal", Values(n, 0.75F)},         {"one hot", Values(n, 0.0F)},
      {"alternating", Values(n)},          {"heavy tail", Values(n)},
      {"constant by block", Values(n)},    {"half steps", Values(n)},
      {"one huge among small", Values(n)}, {"normal", RandomValues(n, 5)},
      {"spread", Values(n, 0.01F)},
  };
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < n; ++i) {
    inputs[2].values[i] = i % 2 == 0 ? 1.0F : -1.0F;
    const double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
    inputs[3].values[i] = static_cast<float>(std::tan(3.141592653589793 * (u - 0.5)));  // Cauchy
    inputs[4].values[i] = static_cast<float>(1 + i / 16) * (i % 3 == 0 ? -1.0F : 1.0F);
    inputs[5].values[i] = (static_cast<float>(i % 126) + 0.5F) / 127.0F;
    inputs[6].values[i] = i % 2 == 0 ? 1e-3F : -1e-3F;
    if (i % 149 == 148) inputs[8].values[i] = 1.0F;  // gaps that need more than 7 bits
  }
  inputs[1].values[n / 2] = -3.0F;
  inputs[5].values[0] = 1.0F;
  inputs[6].values[n - 1] = 100.0F;
  return inputs;
}

double SquaredError(In x, In y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += difference * difference;
  }
  return sum;
}

double SquaredNorm(In x) { return SquaredError(x, Values(x.size())); }

const std::vector<std::vector<std::int64_t>> kShapes = {{1}, {2}, {31}, {64}, {97}, {20, 30}, {0}};

TEST_P(TraitsHold, ExactMeansBitForBit) {
  for (const TensorSpec& tensor : Tensors(kShapes)) {
    OneRank rank(Make(spec()), tensor);
    if (!rank.plan().traits.exact) continue;
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Values x = RandomValues(tensor.numel(), step);
      EXPECT_TRUE(SameBits(rank.Step(x), x)) << ShapeText(tensor.shape);
    }
  }
}

// A method that never says `exact` although it is loses a check: the claim has to be there too.
TEST(ExactTrait, IsClaimedByWhatIsExact) {
  const TensorSpec tensor = Tensors({{40}})[0];
  EXPECT_TRUE(Make("none").MakePlan(tensor)->traits.exact);
  EXPECT_TRUE(Make("top_k(ratio=1)").MakePlan(tensor)->traits.exact);
  EXPECT_TRUE(Make("top_k(k=99)|delta_index").MakePlan(tensor)->traits.exact);
  EXPECT_FALSE(Make("top_k(k=39)").MakePlan(tensor)->traits.exact);
  EXPECT_FALSE(Make("top_k(k=99)|fp16_values").MakePlan(tensor)->traits.exact);
}

TEST_P(TraitsHold, FixedSizeMeansTheSameBytesForAnyContents) {
  // Many elements: the length of a code that varies would show.
  for (const TensorSpec& tensor : Tensors({{3000}, {60, 50}})) {
    std::vector<std::size_t> sizes;
    bool claimed = false;
    for (const Input& input : HardInputs(tensor.numel())) {
      OneRank rank(Make(spec()), tensor);
      claimed = rank.plan().traits.fixed_size;
      rank.Step(input.values);
      std::size_t bytes = 0;
      for (const Bytestring& payload : rank.payloads()) bytes += payload.size();
      sizes.push_back(bytes);
    }
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    EXPECT_TRUE(!claimed || *least == *most)
        << ShapeText(tensor.shape) << ": " << *least << " to " << *most << " bytes";
  }
}

TEST_P(TraitsHold, ContractiveAsClaimed) {
  for (const TensorSpec& tensor : Tensors(kShapes)) {
    if (tensor.numel() == 0) continue;
    for (const Input& input : HardInputs(tensor.numel())) {
      OneRank rank(Make(spec()), tensor);
      const auto delta = rank.plan().traits.delta;
      if (!delta) continue;
      EXPECT_GT(*delta, 0);
      EXPECT_LE(*delta, 1);
      const double norm = SquaredNorm(input.values);
      // Rounding of the decoded values and of this sum.
      EXPECT_LE(SquaredError(rank.Step(input.values), input.values), ((1 - *delta) + 1e-6) * norm)
          << input.name << " " << ShapeText(tensor.shape);
    }
  }
}

// Power: T = sum over 64 elements of (mean error)^2 / (variance of the mean) is chi-square of 64
// degrees for an unbiased method, and passes below 64 + 6 sqrt(128) = 132 (P(false alarm) < 1e-6).
// A bias of b standard deviations of one draw in every element adds 4096 * 64 * b^2: b = 0.025 adds
// 164, so that T > 132 with probability > 0.999. Rounding down in place of at random has b > 0.7.
TEST_P(TraitsHold, UnbiasedAsClaimed) {
  constexpr std::size_t kElements = 64;
  constexpr std::uint64_t kDraws = 4096;
  const TensorSpec tensor = Tensors({{kElements}})[0];
  OneRank rank(Make(spec()), tensor);
  if (!rank.plan().traits.unbiased) return;
  const Values x = RandomValues(kElements, 3);
  std::vector<double> sum(kElements), squares(kElements);
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const Values estimate = rank.Step(x);
    for (std::size_t i = 0; i < kElements; ++i) {
      const double error = static_cast<double>(estimate[i]) - static_cast<double>(x[i]);
      sum[i] += error;
      squares[i] += error * error;
    }
  }
  double statistic = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const double mean = sum[i] / kDraws, variance = squares[i] / kDraws - mean * mean;
    // An element that never varies has to be right, to rounding.
    if (variance < 1e-12)
      EXPECT_LE(std::fabs(mean), 1e-5 * std::fabs(static_cast<double>(x[i]))) << "element " << i;
    else
      statistic += mean * mean * kDraws / variance;
  }
  EXPECT_LT(statistic, 64 + 6 * std::sqrt(128.0));
}

// What ranks draw has to be independent: then the error of a mean over 4 falls to a quarter.
TEST_P(TraitsHold, RanksDrawIndependently) {
  if (!random()) return;
  const std::vector<TensorSpec> tensors = Tensors({{2000}});
  const Row gradient = {RandomValues(2000, 3)};
  Ranks one(spec(), 1, tensors), four(spec(), 4, tensors);
  one.MustStep({gradient});
  four.MustStep(Gradients(4, gradient));
  const double alone = SquaredError(one.averages()[0][0], gradient[0]);
  EXPECT_GT(alone, 0);
  EXPECT_LT(SquaredError(four.averages()[0][0], gradient[0]), alone / 2);
}

TEST_P(TraitsHold, StepsTensorsAndSeedsDrawDifferently) {
  if (!random()) return;
  const auto payload = [&](const char* name, std::uint64_t seed, std::uint64_t step) {
    OneRank rank(Make(spec()), {name, {300}, DType::kF32}, 0, seed);
    rank.context().step = step;
    rank.Step(RandomValues(300, 3));
    return rank.payloads();
  };
  EXPECT_EQ(payload("a", 1, 1), payload("a", 1, 1));
  EXPECT_NE(payload("a", 1, 1), payload("b", 1, 1));
  EXPECT_NE(payload("a", 1, 1), payload("a", 2, 1));
  EXPECT_NE(payload("a", 1, 1), payload("a", 1, 2));
}

SLIMGRAD_FOR_EVERY_SPEC(TraitsHold);

// Which claims there are: losing one would silence its check.
TEST(Claims, AreMade) {
  const TensorSpec tensor = Tensors({{20, 30}})[0];
  const auto traits = [&](const char* spec) { return Make(spec).MakePlan(tensor)->traits; };
  EXPECT_TRUE(traits("int8(rounding=stochastic)").unbiased);
  EXPECT_FALSE(traits("int8").unbiased);
  EXPECT_FALSE(traits("error_feedback(int8(rounding=stochastic))").unbiased);
  EXPECT_DOUBLE_EQ(traits("top_k(k=60)").delta.value(), 0.1);
  EXPECT_DOUBLE_EQ(traits("top_k(k=60)|delta_index").delta.value(), 0.1);
  EXPECT_TRUE(traits("int8").delta.has_value());
  EXPECT_TRUE(traits("one_bit").delta.has_value());
  EXPECT_TRUE(traits("scaled_sign").delta.has_value());
  EXPECT_FALSE(traits("error_feedback(top_k)").delta.has_value());
}

}  // namespace
}  // namespace slimgrad::conformance
