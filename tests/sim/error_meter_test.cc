#include "sim/error_meter.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slimgrad::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Tensors = std::vector<std::vector<float>>;

std::vector<In> Ins(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

// The definitions of docs/design.md, written down again: one long sum in extended precision.
struct Expected {
  double nmse, cosine;
};
Expected Measure(const Tensors& exact, const Tensors& averaged) {
  long double error = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t t = 0; t < exact.size(); ++t) {
    for (std::size_t i = 0; i < exact[t].size(); ++i) {
      const long double a = exact[t][i], b = averaged[t][i];
      error += (b - a) * (b - a);
      aa += a * a;
      bb += b * b;
      ab += a * b;
    }
  }
  return {static_cast<double>(error / aa), static_cast<double>(ab / std::sqrt(aa * bb))};
}

// Irregular values of both signs in [-scale, scale].
std::vector<float> Irregular(std::size_t n, unsigned seed, float scale) {
  std::vector<float> values(n);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = scale * (static_cast<float>(seed >> 8) / 8388608.0F - 1);
  }
  return values;
}

TEST(ErrorMeter, AgainstTheDefinition) {
  const std::vector<TensorSpec> specs = {{"a", {3}}, {"b", {131, 71}}, {"c", {1}}};
  ErrorMeter meter({}, specs);
  std::vector<Expected> whole;
  std::vector<std::vector<Expected>> by_tensor(3);
  for (unsigned step = 0; step < 5; ++step) {
    const float scale = std::pow(10.0F, static_cast<float>(step) * 6 - 12);  // 1e-12 to 1e12
    Tensors exact, averaged;
    for (unsigned t = 0; t < 3; ++t) {
      exact.push_back(Irregular(specs[t].numel(), step * 10 + t, scale));
      averaged.push_back(Irregular(specs[t].numel(), step * 10 + t + 5, scale));
      by_tensor[t].push_back(Measure({exact[t]}, {averaged[t]}));
    }
    whole.push_back(Measure(exact, averaged));
    meter.AddStep(Ins(exact), Ins(averaged));
  }
  Row row;
  meter.Fill(row);
  ASSERT_THAT(row.nmse_steps, SizeIs(5));
  double mean = 0, cosine = 0;
  for (std::size_t step = 0; step < 5; ++step) {
    EXPECT_NEAR(row.nmse_steps[step] / whole[step].nmse, 1, 1e-12);
    mean += whole[step].nmse / 5;
    cosine += whole[step].cosine / 5;
  }
  EXPECT_NEAR(row.nmse->mean / mean, 1, 1e-12);
  EXPECT_NEAR(row.cosine->mean, cosine, 1e-12);
  ASSERT_THAT(row.tensor_nmse, SizeIs(3));
  double worst_nmse = 0, worst_cosine = 1;
  for (std::size_t t = 0; t < 3; ++t) {
    double nmse = 0, angle = 0;
    for (const Expected& e : by_tensor[t]) {
      nmse += e.nmse / 5;
      angle += e.cosine / 5;
    }
    EXPECT_EQ(row.tensor_nmse[t].name, specs[t].name);
    EXPECT_NEAR(row.tensor_nmse[t].value / nmse, 1, 1e-12);
    if (nmse > worst_nmse) {
      worst_nmse = nmse;
      EXPECT_LE(nmse, row.nmse->worst * (1 + 1e-12));
    }
    worst_cosine = std::min(worst_cosine, angle);
  }
  EXPECT_NEAR(row.nmse->worst / worst_nmse, 1, 1e-12);
  EXPECT_NEAR(row.cosine->worst, worst_cosine, 1e-12);
}

TEST(ErrorMeter, ByHand) {
  const std::vector<TensorSpec> specs = {{"a", {2}}, {"b", {1}}};
  ErrorMeter meter({}, specs);
  // First step: |a|^2 = 9 + 16 + 144 = 169, |a' - a|^2 = 16 + 9, a'.a = 9 + 108, |a'|^2 = 90.
  meter.AddStep(Ins({{3, 4}, {12}}), Ins({{3, 0}, {9}}));
  meter.AddStep(Ins({{3, 4}, {12}}), Ins({{3, 4}, {12}}));
  Row row;
  meter.Fill(row);
  EXPECT_THAT(row.nmse_steps, ElementsAre(25.0 / 169, 0));
  EXPECT_DOUBLE_EQ(row.nmse->mean, 25.0 / 338);
  EXPECT_DOUBLE_EQ(row.nmse->median, 0);
  EXPECT_DOUBLE_EQ(row.nmse->tail, 25.0 / 169);
  EXPECT_EQ(row.nmse->worst_tensor, "a");
  EXPECT_DOUBLE_EQ(row.nmse->worst, 16.0 / 25 / 2);
  const double angle = (9 + 108) / (13 * std::sqrt(90.0));
  EXPECT_DOUBLE_EQ(row.cosine->mean, (angle + 1) / 2);
  EXPECT_DOUBLE_EQ(row.cosine->tail, angle);
  EXPECT_EQ(row.cosine->worst_tensor, "a");
  EXPECT_DOUBLE_EQ(row.cosine->worst, (0.6 + 1) / 2);
  ASSERT_THAT(row.tensor_nmse, SizeIs(2));
  EXPECT_DOUBLE_EQ(row.tensor_nmse[1].value, 9.0 / 144 / 2);
}

// In fp64 3 / (sqrt(3) * sqrt(3)) is 1 + 2^-52.
TEST(ErrorMeter, ACosineIsAtMostOne) {
  const std::vector<TensorSpec> specs = {{"w", {3}}};
  for (const float sign : {1.0F, -1.0F}) {
    ErrorMeter meter({}, specs);
    const Tensors exact = {{1, 1, 1}}, averaged = {{sign, sign, sign}};
    meter.AddStep(Ins(exact), Ins(averaged));
    Row row;
    meter.Fill(row);
    EXPECT_EQ(row.cosine->mean, sign);
    EXPECT_EQ(row.cosine->worst, sign);
  }
}

TEST(ErrorMeter, ZeroGradients) {
  const std::vector<TensorSpec> specs = {{"a", {2}}};
  const Tensors zero = {{0, -0.0F}}, one = {{1, 0}};
  {
    ErrorMeter meter({}, specs);
    meter.AddStep(Ins(zero), Ins(zero));
    Row row;
    meter.Fill(row);
    EXPECT_THAT(row.nmse_steps, ElementsAre(0));
    EXPECT_EQ(row.nmse->mean, 0);
    EXPECT_EQ(row.cosine->mean, 1);
  }
  {
    ErrorMeter meter({}, specs);
    meter.AddStep(Ins(one), Ins(zero));  // nothing arrived
    meter.AddStep(Ins(zero), Ins(one));  // something out of nothing: no number for NMSE
    Row row;
    meter.Fill(row);
    EXPECT_EQ(row.nmse_steps[0], 1);
    EXPECT_TRUE(std::isnan(row.nmse_steps[1]));
    EXPECT_EQ(row.nmse->mean, 1);
    EXPECT_EQ(row.tensor_nmse[0].value, 1);
    EXPECT_EQ(row.cosine->mean, 0);
  }
}

TEST(ErrorMeter, TinyAndHugeGradients) {
  const std::vector<TensorSpec> specs = {{"a", {2}}};
  const float tiny = std::numeric_limits<float>::denorm_min(),
              huge = std::numeric_limits<float>::max();
  ErrorMeter meter({}, specs);
  meter.AddStep(Ins({{tiny, tiny}}), Ins({{tiny, 0}}));
  meter.AddStep(Ins({{huge, huge}}), Ins({{huge, -huge}}));
  Row row;
  meter.Fill(row);
  EXPECT_THAT(row.nmse_steps, ElementsAre(0.5, 2));
  EXPECT_NEAR(row.cosine->mean, std::sqrt(0.5) / 2, 1e-12);
}

TEST(ErrorMeter, SkippedStepsAreMarkedAndLeftOut) {
  const std::vector<TensorSpec> specs = {{"a", {1}}};
  ErrorMeter meter({}, specs);
  meter.AddStep(Ins({{2}}), Ins({{1}}));
  meter.AddSkippedStep();
  meter.AddStep(Ins({{2}}), Ins({{2}}));
  Row row;
  meter.Fill(row);
  ASSERT_THAT(row.nmse_steps, SizeIs(3));
  EXPECT_EQ(row.nmse_steps[0], 0.25);
  EXPECT_TRUE(std::isnan(row.nmse_steps[1]));
  EXPECT_EQ(row.nmse_steps[2], 0);
  EXPECT_EQ(row.nmse->mean, 0.125);
}

TEST(ErrorMeter, NothingMeasured) {
  const std::vector<TensorSpec> specs = {{"a", {1}}};
  ErrorMeter meter({}, specs);
  meter.AddSkippedStep();
  Row row;
  meter.Fill(row);
  EXPECT_FALSE(row.nmse);
  EXPECT_FALSE(row.cosine);
  EXPECT_THAT(row.tensor_nmse, IsEmpty());
  EXPECT_THAT(row.nmse_steps, SizeIs(1));
}

// ---- Quantiles: nearest rank.

std::vector<double> OneTo(int m) {
  std::vector<double> values(static_cast<std::size_t>(m));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

TEST(Summarize, NearestRank) {
  const Summary of_one = Summarize(OneTo(1), 0.95);
  EXPECT_EQ(of_one.count, 1U);
  EXPECT_EQ(of_one.mean, 1);
  EXPECT_EQ(of_one.median, 1);
  EXPECT_EQ(of_one.tail, 1);
  EXPECT_EQ(Summarize(OneTo(2), 0.95).median, 1);
  EXPECT_EQ(Summarize(OneTo(2), 0.95).tail, 2);
  EXPECT_EQ(Summarize(OneTo(3), 0.95).median, 2);
  EXPECT_EQ(Summarize(OneTo(20), 0.95).tail, 19);
  EXPECT_EQ(Summarize(OneTo(20), 0.05).tail, 1);
  EXPECT_EQ(Summarize(OneTo(21), 0.95).tail, 20);
  EXPECT_EQ(Summarize(OneTo(21), 0.05).tail, 2);
  EXPECT_EQ(Summarize(OneTo(100), 0.95).tail, 95);
  EXPECT_EQ(Summarize(OneTo(100), 0.05).tail, 5);
  EXPECT_EQ(Summarize(OneTo(100), 0.95).median, 50);
  EXPECT_EQ(Summarize(OneTo(100), 0.95).mean, 50.5);
}

TEST(Summarize, OrderAndNaNsDoNotMatter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Summary summary = Summarize(std::vector<double>{nan, 3, 1, nan, 2}, 0.95);
  EXPECT_EQ(summary.count, 3U);
  EXPECT_EQ(summary.mean, 2);
  EXPECT_EQ(summary.median, 2);
  EXPECT_EQ(summary.tail, 3);
  EXPECT_EQ(Summarize(std::vector<double>{nan}, 0.95).count, 0U);
  EXPECT_EQ(Summarize({}, 0.95).count, 0U);
}

}  // namespace
}  // namespace slimgrad::sim
