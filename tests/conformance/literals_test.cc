// Values worked out by hand.
#include <bit>
#include <cmath>

#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

// Runs [1.0, 0.1] three times through one rank.
void ExpectThreeSteps(const char* spec, const std::vector<Values>& expected) {
  Ranks ranks(spec, 1, Tensors({{2}}));
  for (const Values& step : expected) {
    ranks.MustStep({{{1.0F, 0.1F}}});
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(ranks.averages()[0][0][i], step[i], 1e-6) << spec << "[" << i << "]";
  }
}

TEST(Literals, ErrorFeedbackOverScaledSign) {
  ExpectThreeSteps("error_feedback(scaled_sign)", {{.55F, .55F}, {.9F, -.9F}, {1.1F, 1.1F}});
}

TEST(Literals, ErrorFeedbackOverOneBit) {
  ExpectThreeSteps("error_feedback(one_bit)", {{.55F, .55F}, {1.45F, -.35F}, {.55F, .55F}});
}

Values AverageOf(const char* spec, int world, const Values& gradient) {
  Ranks ranks(spec, world, Tensors({{static_cast<std::int64_t>(gradient.size())}}));
  ranks.MustStep(Gradients(static_cast<std::size_t>(world), {gradient}));
  return ranks.averages()[0][0];
}

TEST(Literals, HalfPrecisionSumsNeitherOverflowNorVanish) {
  EXPECT_EQ(AverageOf("fp16", 2, {40000.0F}), Values{40000.0F});
  EXPECT_EQ(AverageOf("fp16", 1024, {0x1p-24F}), Values{0x1p-24F});
  EXPECT_EQ(AverageOf("bf16", 2, {0x1.FEp127F}), Values{0x1.FEp127F});
  EXPECT_EQ(AverageOf("none", 3, {3e38F}), Values{3e38F});
}

TEST(Literals, HalfPrecisionSaturatesOrOverflowsAsAsked) {
  EXPECT_EQ(AverageOf("fp16", 1, {65519.0F, 65520.0F, -1e30F}),
            (Values{65504.0F, 65504.0F, -65504.0F}));
  EXPECT_EQ(AverageOf("fp16(overflow=inf)", 1, {65519.0F, 65520.0F, -1e30F}),
            (Values{65504.0F, INFINITY, -INFINITY}));
  EXPECT_EQ(AverageOf("bf16", 1, {0x1.FFp127F}), Values{0x1.FEp127F});
  EXPECT_EQ(AverageOf("bf16(overflow=inf)", 1, {0x1.FFp127F}), Values{INFINITY});
  EXPECT_EQ(AverageOf("top_k(k=1)|fp16_values", 1, {1.0F, 1e9F}), (Values{0.0F, 65504.0F}));
}

TEST(Literals, SaturatedValuesAreCountedOnEveryRank) {
  Ranks ranks("fp16", 2, Tensors({{3}}));
  ranks.MustStep({{{1e6F, 1.0F, 65519.0F}}, {{-1e6F, 65520.0F, 0.0F}}});
  EXPECT_EQ(ranks.exchange().report().saturated, 3U);
  ranks.MustStep({{{1.0F, 1.0F, 1.0F}}, {{1.0F, 1.0F, 1.0F}}});
  EXPECT_EQ(ranks.exchange().report().saturated, 0U);
}

TEST(Literals, SaturatedSparseValuesAreCounted) {
  Ranks ranks("error_feedback(top_k(k=2)|delta_index|fp16_values)", 1, Tensors({{4}}));
  ranks.MustStep({{{1e6F, 1.0F, -1e6F, 0.0F}}});
  EXPECT_EQ(ranks.exchange().report().saturated, 2U);
}

// What saturates is carried: 100000 is 65504 now and the rest later.
TEST(Literals, ErrorFeedbackCarriesWhatSaturates) {
  Ranks ranks("error_feedback(fp16)", 1, Tensors({{1}}));
  ranks.MustStep({{{100000.0F}}});
  EXPECT_EQ(ranks.averages()[0][0][0], 65504.0F);
  EXPECT_EQ(FieldOf(ranks.exchange().state(0, 0), "residual")[0], 34496.0F);
  ranks.MustStep({{{0.0F}}});
  EXPECT_EQ(ranks.averages()[0][0][0], 34496.0F);
}

TEST(Literals, TopKTakesTheLowerIndexOfATie) {
  const Values x = {3, 2, 3, 2, 1, 1};
  EXPECT_EQ(AverageOf("top_k(k=1)", 1, x), (Values{3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(AverageOf("top_k(k=3)", 1, x), (Values{3, 2, 3, 0, 0, 0}));
  EXPECT_EQ(AverageOf("top_k(k=5)", 1, x), (Values{3, 2, 3, 2, 1, 0}));
  EXPECT_EQ(AverageOf("top_k(k=1)", 1, {-3, 3}), (Values{-3, 0}));
}

TEST(Literals, TopKOfZerosTakesTheFirstOnes) {
  OneRank rank(Make("top_k(k=2)"), Tensors({{4}})[0]);
  rank.Step(Values{-0.0F, +0.0F, -0.0F, +0.0F});
  const Bytestring& body = rank.payloads()[0];
  const Buffer<std::byte> aligned(body.size());
  std::copy(body.begin(), body.end(), aligned.data());
  const auto view = PayloadView::Parse(aligned.span());
  ASSERT_TRUE(view.ok());
  const auto indices = view->Get<std::uint32_t>(Tag::kIndex, 2);
  ASSERT_TRUE(indices.ok());
  EXPECT_EQ((*indices)[0], 0U);
  EXPECT_EQ((*indices)[1], 1U);
}

// k = max(1, round(ratio * n)), halves away from zero, at most n.
TEST(Literals, TopKOfARatio) {
  const auto kept = [](const char* spec, std::int64_t n) {
    const Plan plan = *Make(spec).MakePlan({"t", {n}, DType::kF32});
    for (std::size_t k = 0;; ++k)
      if (SectionBytesOf<std::uint32_t>(k) + SectionBytesOf<float>(k) >= plan.rounds[0].bound)
        return k;
  };
  const auto exactly = [](const char* spec, std::int64_t n) {
    const auto delta = Make(spec).MakePlan({"t", {n}, DType::kF32})->traits.delta;
    return delta ? std::llround(*delta * static_cast<double>(n)) : 0;
  };
  EXPECT_EQ(kept("top_k(ratio=0.01)", 0), 0U);
  EXPECT_EQ(exactly("top_k(ratio=0.01)", 1), 1);
  EXPECT_EQ(exactly("top_k(ratio=0.01)", 149), 1);
  EXPECT_EQ(exactly("top_k(ratio=0.01)", 150), 2);
  EXPECT_EQ(exactly("top_k(ratio=0.01)", 250), 3);
  EXPECT_EQ(exactly("top_k(ratio=1)", 7), 7);
  EXPECT_EQ(exactly("top_k(k=9)", 7), 7);
}

TEST(Literals, SignsAndLevels) {
  EXPECT_EQ(AverageOf("one_bit(block=4)", 1, {1, 3, -2, -6}), (Values{2, 2, -4, -4}));
  EXPECT_EQ(AverageOf("scaled_sign(block=4)", 1, {1, 3, -2, -6}), (Values{3, 3, -3, -3}));
  EXPECT_EQ(AverageOf("one_bit(block=2)", 1, {1, 3, -2}), (Values{2, 2, -2}));
  // A zero counts as positive, so that it pulls the positive mean down.
  EXPECT_EQ(AverageOf("one_bit(block=4)", 1, {4, 0, -2, -4}), (Values{2, 2, -3, -3}));
}

TEST(Literals, Int8RoundsToNearestEven) {
  EXPECT_EQ(AverageOf("int8(block=4)", 1, {127, 0.5F, 1.5F, -2.5F}), (Values{127, 0, 2, -2}));
  EXPECT_EQ(AverageOf("int8(block=2)", 1, {127, 0.4F, 0, 0}), (Values{127, 0, 0, 0}));
}

// A matrix of rank 1 is found in one step, and by every rank.
TEST(Literals, PowerSgdFindsAMatrixOfRankOne) {
  const std::vector<TensorSpec> tensors = Tensors({{6, 8}});
  Values outer(48);
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 8; ++j)
      outer[i * 8 + j] = static_cast<float>(i + 1) * (static_cast<float>(j) - 2.5F);
  for (int world : {1, 2, 3}) {
    Ranks ranks("power_sgd(rank=1)", world, tensors);
    ranks.MustStep(Gradients(static_cast<std::size_t>(world), {outer}));
    for (std::size_t i = 0; i < 48; ++i)
      EXPECT_NEAR(ranks.averages()[0][0][i], outer[i], 1e-4) << i;
  }
}

// The warm start is what makes one iteration a step enough: on a fixed matrix the error falls to
// that of the best approximation, sqrt(1^2 + 0.5^2) here, far from what one iteration gives.
TEST(Literals, PowerSgdStartsWhereTheLastStepEnded) {
  const std::vector<TensorSpec> tensors = Tensors({{20, 20}});
  Values diagonal(400);
  for (std::size_t i = 0; i < 20; ++i)
    diagonal[i * 20 + i] = i == 0 ? 3.0F : i == 1 ? 2.0F : i == 2 ? 1.0F : i == 3 ? 0.5F : 0.0F;
  Ranks ranks("power_sgd(rank=2)", 1, tensors);
  double error = 0;
  for (int step = 0; step < 30; ++step) {
    ranks.MustStep({{diagonal}});
    error = 0;
    for (std::size_t i = 0; i < 400; ++i)
      error += std::pow(ranks.averages()[0][0][i] - diagonal[i], 2);
  }
  EXPECT_NEAR(std::sqrt(error), std::sqrt(1.25), 1e-3);
}

// Payload bytes by hand: 48 of frame header, 16 of section header, data up to a multiple of 16.
TEST(Literals, PayloadBytes) {
  const auto bytes = [](const char* spec, std::vector<std::int64_t> shape) {
    const std::vector<TensorSpec> tensors = Tensors({std::move(shape)});
    Ranks ranks(spec, 1, tensors);
    ranks.MustStep({{RandomValues(tensors[0].numel(), 1)}});
    return ranks.exchange().report().payload_bytes;
  };
  EXPECT_EQ(bytes("none", {100}), 400U);
  EXPECT_EQ(bytes("fp16", {100}), 200U);
  EXPECT_EQ(bytes("bf16", {101}), 202U);
  EXPECT_EQ(bytes("top_k(k=10)", {100}), 48U + 2 * (16 + 48));
  EXPECT_EQ(bytes("top_k(k=10)|fp16_values", {100}), 48U + 16 + 48 + 16 + 32);
  EXPECT_EQ(bytes("top_k(k=10)|delta_index", {100}), 48U + 16 + 16 + 16 + 48);
  EXPECT_EQ(bytes("int8(block=10)", {100}), 48U + 16 + 48 + 16 + 112);
  EXPECT_EQ(bytes("one_bit(block=10)", {100}), 48U + 16 + 16 + 2 * (16 + 48));
  EXPECT_EQ(bytes("scaled_sign(block=10)", {100}), 48U + 16 + 16 + 16 + 48);
  EXPECT_EQ(bytes("power_sgd(rank=2)", {10, 12}), (10U + 12) * 2 * 4);
}

}  // namespace
}  // namespace slimgrad::conformance
