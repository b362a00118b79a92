// The model against the shipped trace: what PyTorch computed.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/model.h"
#include "sim/optimizer.h"
#include "sim/trace.h"

namespace slimgrad::sim {
namespace {

using Tensors = std::vector<std::vector<float>>;

std::vector<In> Ins(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }
std::vector<Out> Outs(Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

class ModelTraceTest : public testing::Test {
 protected:
  // Examples of the data set, copied.
  struct Examples {
    std::vector<float> inputs;
    std::vector<std::int32_t> labels;

    void Add(const LabelledRows& rows, std::size_t row) {
      inputs.resize(inputs.size() + rows.features);
      rows.CopyInputs(row, Out(inputs).last(rows.features));
      labels.push_back(static_cast<std::int32_t>(rows.Label(row)));
    }
    Batch batch() const { return {labels.size(), inputs, labels}; }
  };

  void SetUp() override {
    auto trace = Trace::Open("traces/digits_mlp");
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    trace_ = std::make_unique<Trace>(std::move(trace).value());
    auto model = MakeModel(*trace_->schema().model->graph, trace_->tensors(),
                           trace_->data()->train.features, 10);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model).value();
    for (const In tensor : trace_->initial_weights()) {
      weights_.emplace_back(tensor.begin(), tensor.end());
    }
  }

  Examples BatchOf(std::size_t step, std::size_t rank) const {
    const BatchOrder& order = *trace_->data()->batches;
    Examples examples;
    for (std::size_t i = 0; i < order.batch; ++i) {
      examples.Add(trace_->data()->train, order.Row(step, rank, i));
    }
    return examples;
  }

  Tensors Zeros() const {
    Tensors zeros;
    for (const auto& tensor : weights_) zeros.emplace_back(tensor.size());
    return zeros;
  }

  // One step of data-parallel training; returns the mean loss over workers.
  double Train(std::size_t step, Optimizer& optimizer) {
    const auto world = static_cast<std::size_t>(trace_->schema().world_size);
    Tensors sum = Zeros();
    Tensors gradients = Zeros();
    double loss = 0;
    for (std::size_t rank = 0; rank < world; ++rank) {
      loss += model_->Gradient(Ins(weights_), BatchOf(step, rank).batch(), Outs(gradients));
      for (std::size_t t = 0; t < sum.size(); ++t) {
        for (std::size_t i = 0; i < sum[t].size(); ++i) sum[t][i] += gradients[t][i];
      }
    }
    for (auto& tensor : sum) {
      for (float& g : tensor) g /= static_cast<float>(world);
    }
    optimizer.Step(trace_->schema().learning_rates[step], Ins(sum), Outs(weights_));
    return loss / static_cast<double>(world);
  }

  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Model> model_;
  Tensors weights_;
};

TEST_F(ModelTraceTest, FirstGradientsAreTheRecordedOnes) {
  for (std::size_t rank = 0; rank < 4; ++rank) {
    Tensors gradients = Zeros();
    model_->Gradient(Ins(weights_), BatchOf(0, rank).batch(), Outs(gradients));
    const auto recorded = trace_->Gradients(0, static_cast<std::int64_t>(rank));
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      const auto expected = recorded->tensors()[t].As<float>();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(gradients[t][i], expected[i], 1e-7 + 1e-6 * std::abs(expected[i]));
      }
    }
  }
}

TEST_F(ModelTraceTest, EvaluatesTheFinalWeightsAsRecorded) {
  Examples eval;
  const LabelledRows& rows = *trace_->data()->eval;
  for (std::size_t row = 0; row < rows.rows; ++row) eval.Add(rows, row);
  const Evaluation evaluation = model_->Evaluate(trace_->final_weights(), eval.batch());
  EXPECT_NEAR(evaluation.loss, *trace_->schema().results.final_eval_loss, 1e-6);
  EXPECT_NEAR(evaluation.accuracy, *trace_->schema().results.final_eval_accuracy, 1e-12);
}

TEST_F(ModelTraceTest, TrainingAgainReproducesTheRun) {
  Optimizer optimizer(trace_->schema().optimizer, trace_->tensors());
  for (std::size_t step = 0; step < trace_->schema().learning_rates.size(); ++step) {
    // Recorded with six decimals.
    ASSERT_NEAR(Train(step, optimizer), trace_->schema().results.train_loss[step], 1e-5);
  }
  double worst = 0;
  for (std::size_t t = 0; t < weights_.size(); ++t) {
    for (std::size_t i = 0; i < weights_[t].size(); ++i) {
      const float recorded = trace_->final_weights()[t][i];
      worst = std::max(worst, std::abs(weights_[t][i] - recorded) / (1.0 + std::abs(recorded)));
    }
  }
  EXPECT_LT(worst, 1e-5);
}

}  // namespace
}  // namespace slimgrad::sim
