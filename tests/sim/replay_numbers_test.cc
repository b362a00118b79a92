// What a replay computes, against a replay written down again in fp64: SGD with momentum 0.9, and
// of every tensor the element of largest magnitude, with or without error feedback.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/replay_fixture.h"

namespace slimgrad::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Values = std::vector<std::vector<double>>;

struct Expected {
  Values weights;
  std::vector<double> nmse, residual_norms;
};

class HandReplay {
 public:
  HandReplay(const SyntheticTrace& made, bool sparse, bool feedback)
      : made_(made), sparse_(sparse), feedback_(feedback), residuals_(2, Zeros()), v_(Zeros()) {
    for (std::size_t t = 0; t < 2; ++t)
      result_.weights.emplace_back(made.weights()[t].begin(), made.weights()[t].end());
  }

  Expected Go(std::int64_t steps, std::set<std::int64_t> skipped = {}) {
    for (std::int64_t step = 0; step < steps; ++step)
      if (!skipped.contains(step)) Step(step);
    return result_;
  }

 private:
  static Values Zeros() { return {std::vector<double>(6), std::vector<double>(2)}; }
  static double Squares(const Values& values) {
    double sum = 0;
    for (const auto& tensor : values)
      for (const double value : tensor) sum += value * value;
    return sum;
  }

  void Step(std::int64_t step) {
    Values exact = Zeros(), average = Zeros(), error = Zeros();
    double norms = 0;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (std::size_t t = 0; t < 2; ++t) {
        const std::vector<float> g = made_.Gradient(step, static_cast<std::int64_t>(rank), t);
        for (std::size_t i = 0; i < g.size(); ++i) exact[t][i] += g[i] / 2.0;
        Send(g, residuals_[rank][t], average[t]);
      }
      norms += std::sqrt(Squares(residuals_[rank])) / 2;
    }
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t i = 0; i < exact[t].size(); ++i) {
        error[t][i] = average[t][i] - exact[t][i];
        v_[t][i] = 0.9 * v_[t][i] + average[t][i];
        result_.weights[t][i] -=
            made_.schema.learning_rates[static_cast<std::size_t>(step)] * v_[t][i];
      }
    }
    result_.nmse.push_back(Squares(error) / Squares(exact));
    result_.residual_norms.push_back(norms);
  }

  void Send(const std::vector<float>& g, std::vector<double>& residual,
            std::vector<double>& average) const {
    std::vector<double> x(g.begin(), g.end());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += residual[i];
    std::size_t largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::abs(x[i]) > std::abs(x[largest])) largest = i;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool sent = !sparse_ || i == largest;
      if (sent) average[i] += x[i] / 2;
      if (feedback_) residual[i] = sent ? 0 : x[i];
    }
  }

  const SyntheticTrace& made_;
  bool sparse_, feedback_;
  std::vector<Values> residuals_;
  Values v_;
  Expected result_;
};

double Distance(const Values& weights, const Values& base) {
  double difference = 0, norm = 0;
  for (std::size_t t = 0; t < base.size(); ++t) {
    for (std::size_t i = 0; i < base[t].size(); ++i) {
      difference += std::pow(weights[t][i] - base[t][i], 2);
      norm += base[t][i] * base[t][i];
    }
  }
  return std::sqrt(difference / norm);
}

// Mean loss on the evaluation set: the first two training rows.
double EvalLoss(const SyntheticTrace& made, const Values& weights) {
  double loss = 0;
  for (std::size_t row = 0; row < 2; ++row) {
    double logits[2];
    for (std::size_t c = 0; c < 2; ++c) {
      logits[c] = weights[1][c];
      for (std::size_t j = 0; j < 3; ++j)
        logits[c] += weights[0][c * 3 + j] * made.inputs[row * 3 + j] * 0.0625;
    }
    const std::size_t label = made.labels[row];
    loss += std::log1p(std::exp(logits[1 - label] - logits[label])) / 2;
  }
  return loss;
}

class ReplayNumbersTest : public ReplayFixture {
 protected:
  void ExpectRow(const Row& row, const Expected& expected, const Values& base) const {
    ASSERT_EQ(row.failure, "");
    ASSERT_TRUE(row.open_loop) << row.label;
    EXPECT_NEAR(*row.open_loop->weight_distance, Distance(expected.weights, base), 1e-6)
        << row.label;
    EXPECT_NEAR(*row.open_loop->eval_loss, EvalLoss(made_, expected.weights), 1e-5) << row.label;
  }

  SyntheticTrace made_;
};

constexpr char kTopK[] = "top_k(k=1)", kFeedback[] = "error_feedback(top_k(k=1))";

TEST_F(ReplayNumbersTest, OpenLoopByHand) {
  const Report report = ReplayedFrom(made_, std::string(kTopK) + ";" + kFeedback);
  const Expected none = HandReplay(made_, false, false).Go(3);
  const Expected top_k = HandReplay(made_, true, false).Go(3);
  const Expected feedback = HandReplay(made_, true, true).Go(3);
  ExpectRow(RowOf(report, "none"), none, none.weights);
  ExpectRow(RowOf(report, kTopK), top_k, none.weights);
  ExpectRow(RowOf(report, kFeedback), feedback, none.weights);
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_EQ(RowOf(report, "none").nmse_steps[step], 0);
    EXPECT_NEAR(RowOf(report, kTopK).nmse_steps[step], top_k.nmse[step], 1e-6);
    EXPECT_NEAR(RowOf(report, kFeedback).nmse_steps[step], feedback.nmse[step], 1e-6);
    EXPECT_NEAR(RowOf(report, kFeedback).residual_norm_steps[step], feedback.residual_norms[step],
                1e-4);
  }
  EXPECT_THAT(RowOf(report, kTopK).residual_norm_steps, IsEmpty());
  EXPECT_THAT(RowOf(report, "bf16").residual_norm_steps, IsEmpty());
}

TEST_F(ReplayNumbersTest, ResidualsAreFoundInsideOtherWrappers) {
  const Report report = ReplayedFrom(
      made_, "small_tensors(error_feedback(top_k(k=1)),below=1); " + std::string(kFeedback));
  EXPECT_THAT(report.rows[2].residual_norm_steps, SizeIs(3));
  EXPECT_EQ(report.rows[2].residual_norm_steps, report.rows[3].residual_norm_steps);
}

TEST_F(ReplayNumbersTest, OnlyTheFirstSteps) {
  ReplayOptions options;
  options.steps = 2;
  const Report report = ReplayedFrom(made_, kFeedback, options);
  const Expected none = HandReplay(made_, false, false).Go(2);
  ExpectRow(RowOf(report, kFeedback), HandReplay(made_, true, true).Go(2), none.weights);
  EXPECT_THAT(RowOf(report, kFeedback).nmse_steps, SizeIs(2));
  EXPECT_THAT(RowOf(report, kFeedback).closed_loop->train_loss, SizeIs(2));
  EXPECT_THAT(report.provenance, Contains(std::pair<std::string, std::string>("steps", "2 of 3")));
  // The recorded final weights belong to all steps: nothing to check against.
  EXPECT_THAT(report.notes, Not(Contains(HasSubstr("recorded final weights"))));
}

TEST_F(ReplayNumbersTest, AStepWithANaNIsSkippedOnAllAndTheReplayGoesOn) {
  ASSERT_TRUE(made_.WriteTo(folder_).ok());
  std::vector<float> w = made_.Gradient(1, 1, 0);
  w[2] = std::nanf("");
  WriteTensors("steps/00001.001.safetensors", made_.step(w, made_.Gradient(1, 1, 1)));
  const Report report = Replayed(std::string(kTopK) + ";" + kFeedback);
  EXPECT_FALSE(report.HasFailures());
  const Expected none = HandReplay(made_, false, false).Go(3, {1});
  const Expected feedback = HandReplay(made_, true, true).Go(3, {1});
  ExpectRow(RowOf(report, "none"), none, none.weights);
  ExpectRow(RowOf(report, kTopK), HandReplay(made_, true, false).Go(3, {1}), none.weights);
  ExpectRow(RowOf(report, kFeedback), feedback, none.weights);
  for (const Row& row : report.rows) {
    EXPECT_EQ(row.skipped_steps, 1) << row.label;
    ASSERT_THAT(row.nmse_steps, SizeIs(3)) << row.label;
    EXPECT_TRUE(std::isnan(row.nmse_steps[1])) << row.label;
  }
  // The residual is what it was.
  const std::vector<double>& norms = RowOf(report, kFeedback).residual_norm_steps;
  ASSERT_THAT(norms, SizeIs(3));
  EXPECT_EQ(norms[1], norms[0]);
  EXPECT_NEAR(norms[2], feedback.residual_norms[1], 1e-4);
}

}  // namespace
}  // namespace slimgrad::sim
