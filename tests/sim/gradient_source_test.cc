#include "sim/gradient_source.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/gradient_trace.h"
#include "tests/sim/synthetic_trace.h"

namespace slimgrad::sim {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<float> Values(const ConstView& view) {
  const std::span<const float> values = view.As<float>();
  return {values.begin(), values.end()};
}

class GradientSourceTest : public TraceFolder {
 protected:
  Trace Open() const {
    Result<Trace> trace = Trace::Open(folder_);
    EXPECT_TRUE(trace.ok()) << trace.status().message();
    return std::move(trace).value();
  }
  Trace WriteAndOpen(const SyntheticTrace& made) const {
    EXPECT_TRUE(made.WriteTo(folder_).ok());
    return Open();
  }

  SyntheticTrace made_;
};

// ---- Open loop.

class RecordedTest : public GradientSourceTest, public testing::WithParamInterface<DType> {};

TEST_P(RecordedTest, HandsOutWhatWasRecordedAsFp32) {
  GradientTrace recorded;
  recorded.schema.gradient_dtype = GetParam();
  ASSERT_TRUE(recorded.WriteTo(folder_).ok());
  const Trace trace = Open();
  const auto source = RecordedGradients(trace, {});
  for (const std::int64_t step : {0, 3, 1, 2}) {  // in any order
    ASSERT_TRUE(source->Load(step, {}).ok());
    ASSERT_EQ(source->gradients().size(), 3U);
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const auto gradients = source->gradients()[static_cast<std::size_t>(rank)];
      ASSERT_EQ(gradients.size(), 2U);
      for (std::size_t t = 0; t < 2; ++t) {
        std::vector<float> expected(trace.tensors()[t].numel());
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] = recorded.Value(step, rank, t, i);
        EXPECT_THAT(Values(gradients[t]), ElementsAreArray(expected))
            << "step " << step << ", rank " << rank << ", tensor " << t;
      }
    }
    EXPECT_FALSE(source->train_loss());
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, RecordedTest,
                         testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& param) { return std::string(NameOf(param.param)); });

TEST_F(GradientSourceTest, RecordedGradientsIgnoreTheWeights) {
  const Trace trace = WriteAndOpen(made_);
  const auto source = RecordedGradients(trace, {});
  const std::vector<float> w(6, 99), b(2, 99);
  ASSERT_TRUE(source->Load(1, std::vector<In>{w, b}).ok());
  EXPECT_THAT(Values(source->gradients()[1][0]), ElementsAreArray(made_.Gradient(1, 1, 0)));
}

TEST_F(GradientSourceTest, ADamagedStepIsAnErrorWhenItIsLoaded) {
  const Trace trace = WriteAndOpen(made_);
  Write("steps/00001.001.safetensors", "short");
  const auto source = RecordedGradients(trace, {});
  EXPECT_TRUE(source->Load(0, {}).ok());
  const Status status = source->Load(1, {});
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("steps/00001.001.safetensors"));
}

// ---- Closed loop. The made-up model is one linear layer, 3 -> 2, under a softmax.

struct Gradient {
  double loss = 0;
  std::vector<double> w = std::vector<double>(6), b = std::vector<double>(2);
};

// Mean over `rows` of the training set, from the textbook, in fp64.
Gradient SoftmaxRegression(const SyntheticTrace& made, const std::vector<float>& w,
                           const std::vector<float>& b, const std::vector<std::size_t>& rows) {
  Gradient gradient;
  const auto count = static_cast<double>(rows.size());
  for (const std::size_t row : rows) {
    double x[3], p[2], sum = 0;
    for (std::size_t j = 0; j < 3; ++j) x[j] = made.inputs[row * 3 + j] * 0.0625;
    for (std::size_t c = 0; c < 2; ++c) {
      double logit = b[c];
      for (std::size_t j = 0; j < 3; ++j) logit += w[c * 3 + j] * x[j];
      sum += p[c] = std::exp(logit);
    }
    gradient.loss -= std::log(p[made.labels[row]] / sum) / count;
    for (std::size_t c = 0; c < 2; ++c) {
      const double error = (p[c] / sum - (c == made.labels[row] ? 1 : 0)) / count;
      gradient.b[c] += error;
      for (std::size_t j = 0; j < 3; ++j) gradient.w[c * 3 + j] += error * x[j];
    }
  }
  return gradient;
}

TEST_F(GradientSourceTest, ModelGradientsAgainstTheTextbook) {
  const Trace trace = WriteAndOpen(made_);
  auto source = ModelGradients(trace);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const std::vector<float> w = {1, -0.5F, 0.25F, 2, 0, -1}, b = {0.125F, -0.75F};
  for (const std::int64_t step : {2, 0, 1}) {
    ASSERT_TRUE((*source)->Load(step, std::vector<In>{w, b}).ok());
    ASSERT_EQ((*source)->gradients().size(), 2U);
    double loss = 0;
    for (std::size_t worker = 0; worker < 2; ++worker) {
      const std::size_t at = (static_cast<std::size_t>(step) * 2 + worker) * 2;
      const Gradient expected =
          SoftmaxRegression(made_, w, b, {made_.batches[at], made_.batches[at + 1]});
      loss += expected.loss / 2;
      const auto found = (*source)->gradients()[worker];
      for (std::size_t i = 0; i < 6; ++i)
        EXPECT_NEAR(Values(found[0])[i], expected.w[i], 1e-6) << step << " " << worker << " " << i;
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_NEAR(Values(found[1])[i], expected.b[i], 1e-6) << step << " " << worker << " " << i;
    }
    ASSERT_TRUE((*source)->train_loss());
    EXPECT_NEAR(*(*source)->train_loss(), loss, 1e-6);
  }
}

TEST_F(GradientSourceTest, EvaluatorAgainstTheTextbook) {
  const Trace trace = WriteAndOpen(made_);
  auto evaluator = Evaluator::Create(trace);
  ASSERT_TRUE(evaluator.ok()) << evaluator.status().message();
  const std::vector<float> w = {1, -0.5F, 0.25F, 2, 0, -1}, b = {0.125F, -0.75F};
  // The evaluation set is the first two rows: [0, 1, 2] of class 0 and [3, 4, 5] of class 1, both
  // divided by 16. Logits: 0.125 and -0.875; 0.265... and -0.6875. So the first row alone is right.
  const Evaluation evaluation = (*evaluator)->Evaluate(std::vector<In>{w, b});
  EXPECT_EQ(evaluation.accuracy, 0.5);
  EXPECT_NEAR(evaluation.loss, SoftmaxRegression(made_, w, b, {0, 1}).loss, 1e-6);
}

TEST_F(GradientSourceTest, NoModel) {
  made_.schema.model->graph.reset();
  const Trace trace = WriteAndOpen(made_);
  for (const Status& status : {ModelGradients(trace).status(), ModelOfTrace(trace).status(),
                               Evaluator::Create(trace).status()}) {
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_EQ(status.message(), "the trace has no model that can be run here");
  }
}

class LackingTest : public GradientSourceTest {
 protected:
  // The made-up trace without these tensors of its data, or without kInitialWeights or kData.
  Trace Without(const std::vector<std::string>& parts) {
    const auto has = [&](std::string_view part) {
      return std::find(parts.begin(), parts.end(), part) == parts.end();
    };
    auto writer = TraceWriter::Create(folder_, made_.schema).value();
    EXPECT_TRUE(made_.WriteSteps(writer).ok());
    if (has(kInitialWeights)) {
      EXPECT_TRUE(writer.InitialWeights(made_.weights()).ok());
    }
    std::vector<SafetensorsEntry> entries;
    for (const SafetensorsEntry& entry : made_.data())
      if (has(entry.name)) entries.push_back(entry);
    TraceDataSource source;
    source.classes = 2;
    if (has(kData)) {
      EXPECT_TRUE(writer.Data(source, entries).ok());
    }
    const Status status = writer.Finish();
    EXPECT_TRUE(status.ok()) << status.message();
    return Open();
  }
  static constexpr char kInitialWeights[] = "initial weights", kData[] = "data";
};

TEST_F(LackingTest, NoData) {
  const Trace trace = Without({kData});
  EXPECT_EQ(ModelGradients(trace).status().message(), "the trace has no data");
  EXPECT_EQ(Evaluator::Create(trace).status().code(), Code::kUnsupported);
}

TEST_F(LackingTest, NoBatches) {
  const Trace trace = Without({"batches"});
  EXPECT_EQ(ModelGradients(trace).status().message(), "the trace records no batches");
  EXPECT_TRUE(Evaluator::Create(trace).ok());
}

TEST_F(LackingTest, NoInitialWeights) {
  const Trace trace = Without({kInitialWeights});
  EXPECT_EQ(ModelGradients(trace).status().message(), "the trace records no initial weights");
  EXPECT_EQ(ModelGradients(trace).status().code(), Code::kUnsupported);
  EXPECT_TRUE(Evaluator::Create(trace).ok());
}

TEST_F(LackingTest, NoEvaluationSet) {
  const Trace trace = Without({"eval_inputs", "eval_labels"});
  EXPECT_TRUE(ModelGradients(trace).ok());
  EXPECT_EQ(Evaluator::Create(trace).status().message(), "the trace has no evaluation set");
}

}  // namespace
}  // namespace slimgrad::sim
