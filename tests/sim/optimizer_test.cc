// Literal values are worked out by hand from docs/trace_format.md, with hyper-parameters that are
// exact in binary where the rule allows it.
#include "sim/optimizer.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/trace.h"

namespace slimgrad::sim {
namespace {

using Kind = OptimizerConfig::Kind;

// An optimizer on a scalar weight.
class Scalar {
 public:
  Scalar(const OptimizerConfig& config, float weight)
      : weight_(weight), optimizer_(config, std::vector<TensorSpec>{{"w", {}}}) {}

  float Step(double learning_rate, float gradient) {
    const In in(&gradient, 1);
    const Out out(&weight_, 1);
    optimizer_.Step(learning_rate, std::span(&in, 1), std::span(&out, 1));
    return weight_;
  }

 private:
  float weight_;
  Optimizer optimizer_;
};

OptimizerConfig Adam(Kind kind, double weight_decay) {
  return {.kind = kind, .weight_decay = weight_decay, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.5};
}

TEST(OptimizerTest, PlainSgd) {
  Scalar w({}, 2);
  EXPECT_EQ(w.Step(0.5, 1), 1.5F);
  EXPECT_EQ(w.Step(0.25, -1), 1.75F);
}

TEST(OptimizerTest, SgdFirstStepHasNoDampening) {
  Scalar w({.momentum = 0.5, .dampening = 0.25, .weight_decay = 0.25}, 2);
  // g = 1 + 0.25 * 2 = 1.5, v = 1.5, w = 2 - 0.5 * 1.5
  EXPECT_EQ(w.Step(0.5, 1), 1.25F);
  // g = 1 + 0.25 * 1.25 = 1.3125, v = 0.5 * 1.5 + 0.75 * 1.3125 = 1.734375
  EXPECT_EQ(w.Step(0.5, 1), 1.25F - 0.5F * 1.734375F);
}

TEST(OptimizerTest, SgdWithoutMomentumIgnoresDampening) {
  Scalar w({.dampening = 0.5}, 2);
  EXPECT_EQ(w.Step(0.5, 1), 1.5F);
  EXPECT_EQ(w.Step(0.5, 1), 1.0F);
}

TEST(OptimizerTest, Nesterov) {
  Scalar w({.momentum = 0.5, .nesterov = true}, 2);
  // v = 1, g = 1 + 0.5 * 1 = 1.5
  EXPECT_EQ(w.Step(0.5, 1), 1.25F);
  // v = 0.5 * 1 - 1 = -0.5, g = -1 - 0.25 = -1.25
  EXPECT_EQ(w.Step(0.5, -1), 1.875F);
}

TEST(OptimizerTest, Adam) {
  Scalar w(Adam(Kind::kAdam, 0), 1);
  // m = 1, v = 1; w = 1 - (0.5 / 0.5) * 1 / (1 / 0.5 + 0.5)
  EXPECT_FLOAT_EQ(w.Step(0.5, 2), 0.6F);
  // m = 1, v = 1; w -= (0.5 / 0.75) / (1 / sqrt(0.4375) + 0.5) = 0.33136866
  EXPECT_FLOAT_EQ(w.Step(0.5, 1), 0.26863134F);
}

TEST(OptimizerTest, AdamAddsWeightDecayToTheGradient) {
  Scalar w(Adam(Kind::kAdam, 0.5), 1);
  // g = 2.5, m = 1.25, v = 0.25 * 6.25; w = 1 - 1.25 / (1.25 / 0.5 + 0.5)
  EXPECT_FLOAT_EQ(w.Step(0.5, 2), 1 - 1.25F / 3);
}

TEST(OptimizerTest, AdamWShrinksTheWeightsFirst) {
  Scalar w(Adam(Kind::kAdamW, 0.5), 1);
  // w = 1 * (1 - 0.5 * 0.5) - 0.4
  EXPECT_FLOAT_EQ(w.Step(0.5, 2), 0.35F);
  EXPECT_FLOAT_EQ(w.Step(0.5, 1), 0.35F * 0.75F - 0.33136866F);
}

// Clips over two tensors, [3] and [4]: their norm is 5.
std::vector<float> StepClipped(const OptimizerConfig& config) {
  Optimizer optimizer(config, std::vector<TensorSpec>{{"a", {1}}, {"b", {1}}});
  const std::vector<float> gradients = {3, 4};
  std::vector<float> weights = {0, 0};
  const std::vector<In> in = {In(gradients).first(1), In(gradients).last(1)};
  const std::vector<Out> out = {Out(weights).first(1), Out(weights).last(1)};
  optimizer.Step(1, in, out);
  return weights;
}

TEST(OptimizerTest, ClipsByTheNormOfAllTensors) {
  // The factor is 2.5 / (5 + 1e-6) = 0.4999999: fp32 tells it from a half.
  const std::vector<float> clipped = StepClipped({.clip_global_norm = 2.5});
  EXPECT_NEAR(clipped[0], -1.4999997, 1e-7);
  EXPECT_NEAR(clipped[1], -1.9999996, 1e-7);
}

TEST(OptimizerTest, ClipsNothingBelowTheNorm) {
  EXPECT_EQ(StepClipped({.clip_global_norm = 5.5}), (std::vector<float>{-3, -4}));
}

TEST(OptimizerTest, ClipsBeforeWeightDecay) {
  Scalar w({.weight_decay = 0.25, .clip_global_norm = 2}, 2);
  // g = 4 is clipped to 2, plus 0.25 * 2; clipped after decay it would be 2.
  EXPECT_NEAR(w.Step(0.5, 4), 0.75, 2e-6);
}

TEST(OptimizerTest, ClippingHugeAndTinyGradientsNeitherOverflowsNorVanishes) {
  Scalar huge({.clip_global_norm = 1}, 0);
  EXPECT_FLOAT_EQ(huge.Step(1, 3e38F), -1);  // the square is beyond fp32
  Scalar tiny({.clip_global_norm = 1}, 0);
  EXPECT_EQ(tiny.Step(1, 1e-40F), -1e-40F);
}

TEST(OptimizerTest, RoundsEveryOperation) {
  // lr * g = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11; a fused multiply-add would leave -2^-24.
  const float x = 1 + std::ldexp(1.0F, -12);
  Scalar w({}, 1 + std::ldexp(1.0F, -11));
  EXPECT_EQ(w.Step(x, x), 0.0F);
}

TEST(OptimizerTest, CountsSteps) {
  Optimizer optimizer({}, std::vector<TensorSpec>{});
  EXPECT_EQ(optimizer.steps(), 0);
  optimizer.Step(1, {}, {});
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(OptimizerTest, EmptyTensorsAndLongOnes) {
  const std::vector<TensorSpec> tensors = {{"empty", {0, 3}}, {"long", {1001}}};
  Optimizer optimizer({.momentum = 0.5}, tensors);
  const std::vector<float> gradient(1001, 1);
  std::vector<float> weights(1001, 2);
  const std::vector<In> in = {{}, gradient};
  const std::vector<Out> out = {{}, weights};
  optimizer.Step(0.5, in, out);
  optimizer.Step(0.5, in, out);
  // 2 - 0.5 * 1 - 0.5 * 1.5
  EXPECT_EQ(weights, std::vector<float>(1001, 0.75F));
}

TEST(OptimizerDeathTest, RefusesSpansThatDoNotFit) {
  Optimizer optimizer({}, std::vector<TensorSpec>{{"w", {2}}});
  std::vector<float> two(2);
  const std::vector<In> short_in = {In(two).first(1)};
  const std::vector<Out> out = {two};
  EXPECT_DEATH(optimizer.Step(1, short_in, out), "check failed");
  EXPECT_DEATH(optimizer.Step(1, {}, out), "check failed");
}

// The mean over ranks of the recorded gradients, in rank order. Sized as the weights.
std::vector<std::vector<float>> AveragedGradients(const Trace& trace, std::int64_t step) {
  std::vector<std::vector<float>> sum;
  const std::int64_t world = trace.schema().world_size;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const auto gradients = trace.Gradients(step, rank);
    EXPECT_TRUE(gradients.ok()) << gradients.status().message();
    for (std::size_t t = 0; t < trace.tensors().size(); ++t) {
      const auto g = gradients->tensors()[t].As<float>();
      if (rank == 0) sum.emplace_back(g.size());
      for (std::size_t i = 0; i < g.size(); ++i) sum[t][i] += g[i];
    }
  }
  for (auto& tensor : sum) {
    for (float& g : tensor) g /= static_cast<float>(world);
  }
  return sum;
}

TEST(OptimizerTest, RecordedGradientsReproduceTheRecordedFinalWeights) {
  const auto trace = Trace::Open("traces/digits_mlp");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  std::vector<std::vector<float>> weights;
  for (const In tensor : trace->initial_weights())
    weights.emplace_back(tensor.begin(), tensor.end());
  Optimizer optimizer(trace->schema().optimizer, trace->tensors());
  for (std::int64_t step = 0; step < trace->schema().steps; ++step) {
    const auto gradients = AveragedGradients(*trace, step);
    optimizer.Step(trace->schema().learning_rates[static_cast<std::size_t>(step)],
                   std::vector<In>(gradients.begin(), gradients.end()),
                   std::vector<Out>(weights.begin(), weights.end()));
  }
  ASSERT_EQ(trace->final_weights().size(), weights.size());
  for (std::size_t t = 0; t < weights.size(); ++t) {
    for (std::size_t i = 0; i < weights[t].size(); ++i) {
      const float recorded = trace->final_weights()[t][i];
      ASSERT_NEAR(weights[t][i], recorded, 1e-5 + 1e-5 * std::abs(recorded));
    }
  }
}

TEST(OptimizerTest, ValidConfigs) {
  EXPECT_TRUE(Validate(OptimizerConfig{}).ok());
  EXPECT_TRUE(Validate({.momentum = 0.9, .dampening = 1, .weight_decay = 3}).ok());
  EXPECT_TRUE(Validate({.momentum = 0.9, .nesterov = true}).ok());
  EXPECT_TRUE(Validate(Adam(Kind::kAdam, 0)).ok());
  EXPECT_TRUE(Validate({.kind = Kind::kAdamW, .eps = 1e-8}).ok());
}

TEST(OptimizerTest, RefusesConfigsByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const auto expect = [](const OptimizerConfig& config, const std::string& message) {
    const Status status = Validate(config);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  };
  expect({.momentum = 1}, "momentum: expected 0 <= momentum < 1, found 1");
  expect({.momentum = nan}, "momentum: expected 0 <= momentum < 1, found nan");
  expect({.dampening = -0.5}, "dampening: expected 0 <= dampening <= 1, found -0.5");
  expect({.nesterov = true}, "momentum: expected > 0 with nesterov, found 0");
  expect({.momentum = 0.5, .dampening = 0.5, .nesterov = true},
         "dampening: expected 0 with nesterov, found 0.5");
  expect({.weight_decay = -1}, "weight_decay: expected a number >= 0, found -1");
  expect({.weight_decay = inf}, "weight_decay: expected a number >= 0, found inf");
  expect({.clip_global_norm = 0}, "clip_global_norm: expected a number > 0, found 0");
  expect({.clip_global_norm = inf}, "clip_global_norm: expected a number > 0, found inf");
  expect({.beta1 = 0.5}, "beta1: expected 0 for sgd, found 0.5");
  expect({.beta2 = 0.5}, "beta2: expected 0 for sgd, found 0.5");
  expect({.eps = 0.5}, "eps: expected 0 for sgd, found 0.5");
  expect({.kind = Kind::kAdam, .beta1 = 1, .eps = 1}, "beta1: expected 0 <= beta1 < 1, found 1");
  expect({.kind = Kind::kAdam, .beta2 = 1, .eps = 1}, "beta2: expected 0 <= beta2 < 1, found 1");
  expect({.kind = Kind::kAdam}, "eps: expected a number > 0, found 0");
  expect({.kind = Kind::kAdamW, .momentum = 0.5, .eps = 1},
         "momentum: expected 0 for adamw, found 0.5");
  expect({.kind = Kind::kAdam, .dampening = 0.5, .eps = 1},
         "dampening: expected 0 for adam, found 0.5");
  expect({.kind = Kind::kAdam, .nesterov = true, .eps = 1},
         "nesterov: expected false for adam, found true");
}

TEST(OptimizerTest, Names) {
  EXPECT_EQ(NameOf(Kind::kSgd), "sgd");
  EXPECT_EQ(NameOf(Kind::kAdam), "adam");
  EXPECT_EQ(NameOf(Kind::kAdamW), "adamw");
}

}  // namespace
}  // namespace slimgrad::sim
