#include "sim/model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"

namespace slimgrad::sim {
namespace {

using Kind = ModelOp::Kind;
using Tensors = std::vector<std::vector<float>>;

ModelOp Linear(std::string weight, std::string bias = "") {
  return {Kind::kLinear, std::move(weight), std::move(bias)};
}
ModelOp Relu() { return {Kind::kRelu, "", ""}; }
ModelOp Tanh() { return {Kind::kTanh, "", ""}; }

std::vector<In> Ins(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }
std::vector<Out> Outs(Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

// Values in [-scale, scale), the same on every run.
std::vector<float> Random(std::string_view name, std::size_t n, float scale) {
  const RandomKey key = MakeRandomKey(1, 0, "model_test", name, kShared);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = scale * (2 * Uniform(key, i) - 1);
  return values;
}

// A model with random weights and a random batch.
struct Problem {
  ModelGraph graph;
  std::vector<TensorSpec> specs;
  std::size_t rows = 0;
  Tensors weights;
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  std::unique_ptr<Model> model;

  Problem(ModelGraph g, std::vector<TensorSpec> s, std::size_t n)
      : graph(std::move(g)), specs(std::move(s)), rows(n) {
    auto made = MakeModel(graph, specs);
    EXPECT_TRUE(made.ok()) << made.status().message();
    model = std::move(made).value();
    for (const TensorSpec& spec : specs) weights.push_back(Random(spec.name, spec.numel(), 0.5F));
    inputs = Random("inputs", rows * model->features(), 1);
    for (std::size_t i = 0; i < rows; ++i) {
      labels.push_back(static_cast<std::int32_t>(i * 7 % model->classes()));
    }
  }

  Batch batch() const { return {rows, inputs, labels}; }

  double Gradient(Tensors& gradients) {
    gradients.clear();
    // Filled with junk: what Gradient must overwrite.
    for (const auto& weight : weights) gradients.emplace_back(weight.size(), 123.0F);
    return model->Gradient(Ins(weights), batch(), Outs(gradients));
  }
  Evaluation Evaluate() const { return model->Evaluate(Ins(weights), batch()); }
};

// The model once more, independent, in fp64, written for the eye.
class Reference {
 public:
  explicit Reference(const Problem& problem) : problem_(problem) {
    for (const auto& weight : problem.weights) weights.emplace_back(weight.begin(), weight.end());
  }

  std::vector<double> Logits(std::size_t row) const {
    const std::size_t features = problem_.model->features();
    std::vector<double> x;
    for (std::size_t i = 0; i < features; ++i) x.push_back(problem_.inputs[row * features + i]);
    for (const ModelOp& op : problem_.graph) {
      if (op.kind == Kind::kLinear) x = Apply(op, x);
      for (double& v : x) {
        if (op.kind == Kind::kRelu) v = std::max(v, 0.0);
        if (op.kind == Kind::kTanh) v = std::tanh(v);
      }
    }
    return x;
  }

  double Loss() const {
    double sum = 0;
    for (std::size_t row = 0; row < problem_.rows; ++row) {
      const std::vector<double> z = Logits(row);
      double exps = 0;
      for (const double v : z) exps += std::exp(v);
      sum += std::log(exps) - z[static_cast<std::size_t>(problem_.labels[row])];
    }
    return sum / static_cast<double>(problem_.rows);
  }

  // The derivative of the loss by one weight, by central differences: good to about 1e-9.
  double Slope(std::size_t tensor, std::size_t element) {
    constexpr double kStep = 1e-5;
    double& weight = weights[tensor][element];
    const double old = weight;
    weight = old + kStep;
    const double above = Loss();
    weight = old - kStep;
    const double below = Loss();
    weight = old;
    return (above - below) / (2 * kStep);
  }

  std::vector<std::vector<double>> weights;

 private:
  std::size_t Find(const std::string& name) const {
    std::size_t i = 0;
    while (problem_.specs[i].name != name) ++i;
    return i;
  }

  std::vector<double> Apply(const ModelOp& op, const std::vector<double>& x) const {
    const std::vector<double>& w = weights[Find(op.weight)];
    std::vector<double> y(w.size() / x.size());
    for (std::size_t o = 0; o < y.size(); ++o) {
      if (!op.bias.empty()) y[o] = weights[Find(op.bias)][o];
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    }
    return y;
  }

  const Problem& problem_;
};

// Loss and gradient agree with the reference's: at every weight, or at every `stride`-th.
void ExpectGradient(Problem problem, std::size_t stride = 1) {
  Tensors gradients;
  const double loss = problem.Gradient(gradients);
  Reference reference(problem);
  EXPECT_NEAR(loss, reference.Loss(), 1e-6);
  EXPECT_NEAR(problem.Evaluate().loss, loss, 1e-12);
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    for (std::size_t i = 0; i < gradients[t].size(); i += stride) {
      ASSERT_NEAR(gradients[t][i], reference.Slope(t, i), 1e-6)
          << problem.specs[t].name << " element " << i;
    }
  }
}

TEST(ModelTest, SoftmaxRegressionGradient) {
  ExpectGradient({{Linear("w")}, {{"w", {5, 7}}}, 9});
  ExpectGradient({{Linear("w", "b")}, {{"w", {5, 7}}, {"b", {5}}}, 9});
}

TEST(ModelTest, MlpGradients) {
  const std::vector<TensorSpec> plain = {{"w0", {6, 8}}, {"w1", {4, 6}}};
  // The order of the tensors is not that of the ops.
  const std::vector<TensorSpec> biased = {{"b1", {4}}, {"w1", {4, 6}}, {"b0", {6}}, {"w0", {6, 8}}};
  for (const ModelOp& nonlinear : {Relu(), Tanh()}) {
    ExpectGradient({{Linear("w0"), nonlinear, Linear("w1")}, plain, 11});
    ExpectGradient({{Linear("w0", "b0"), nonlinear, Linear("w1", "b1")}, biased, 11});
  }
}

TEST(ModelTest, DeepGradientWithElementwiseOpsFirstAndLast) {
  ExpectGradient({{Relu(), Linear("w0"), Tanh(), Linear("w1"), Relu(), Linear("w2"), Tanh()},
                  {{"w0", {9, 6}}, {"w1", {8, 9}}, {"w2", {3, 8}}},
                  10});
}

TEST(ModelTest, SmallestGradients) {
  ExpectGradient({{Linear("w", "b")}, {{"w", {2, 1}}, {"b", {2}}}, 1});
  ExpectGradient(
      {{Linear("w0", "b"), Tanh(), Linear("w1")}, {{"w0", {1, 1}}, {"b", {1}}, {"w1", {2, 1}}}, 1});
  ExpectGradient({{Linear("w")}, {{"w", {1, 3}}}, 2});  // one class: the loss is 0
}

TEST(ModelTest, GradientsLongerThanAChunk) {
  // More than 256 examples, features and classes: every sum is cut, and the last run is short.
  ExpectGradient({{Linear("w0", "b0"), Tanh(), Linear("w1")},
                  {{"w0", {300, 2}}, {"b0", {300}}, {"w1", {3, 300}}},
                  515},
                 131);
  ExpectGradient({{Linear("w0"), Tanh(), Linear("w1", "b1")},
                  {{"w0", {2, 600}}, {"w1", {300, 2}}, {"b1", {300}}},
                  3},
                 131);
}

TEST(ModelTest, ReluPassesNothingAtZero) {
  // The hidden unit is exactly 0, so only the bias behind it learns.
  Problem problem({Linear("w0"), Relu(), Linear("w1", "b1")},
                  {{"w0", {1, 1}}, {"w1", {2, 1}}, {"b1", {2}}}, 1);
  problem.weights = {{0}, {1, -1}, {0, 0}};
  Tensors gradients;
  problem.Gradient(gradients);
  EXPECT_EQ(gradients, (Tensors{{0}, {0, 0}, {-0.5F, 0.5F}}));
}

TEST(ModelTest, UniformLogitsLoseLogClasses) {
  Problem problem({Linear("w", "b")}, {{"w", {10, 3}}, {"b", {10}}}, 20);
  for (auto& weight : problem.weights) weight.assign(weight.size(), 0.0F);
  Tensors gradients;
  EXPECT_NEAR(problem.Gradient(gradients), std::numbers::ln10, 1e-12);
  EXPECT_NEAR(problem.Evaluate().loss, std::numbers::ln10, 1e-12);
}

TEST(ModelTest, HugeLogitsDoNotOverflow) {
  Problem problem({Linear("w")}, {{"w", {2, 1}}}, 1);
  problem.inputs = {1};
  problem.labels = {0};
  Tensors gradients;
  problem.weights = {{1e30F, -1e30F}};
  EXPECT_EQ(problem.Gradient(gradients), 0);
  EXPECT_EQ(gradients, (Tensors{{0, 0}}));
  problem.weights = {{-1e30F, 1e30F}};
  EXPECT_NEAR(problem.Gradient(gradients), 2e30, 1e24);
  EXPECT_EQ(gradients, (Tensors{{-1, 1}}));
  problem.weights = {{1e30F, 1e30F}};
  EXPECT_NEAR(problem.Gradient(gradients), std::numbers::ln2, 1e-12);
}

TEST(ModelTest, AccuracyCountsTheFirstOfEqualLogits) {
  Problem problem({Linear("w")}, {{"w", {3, 1}}}, 4);
  problem.inputs = {1, 1, 1, 1};
  problem.weights = {{0, 2, 2}};
  problem.labels = {1, 2, 0, 1};  // class 1 is guessed
  EXPECT_EQ(problem.Evaluate().accuracy, 0.5);
}

TEST(ModelTest, DivergedWeightsShow) {
  for (const ModelOp& nonlinear : {Relu(), Tanh()}) {
    Problem problem({Linear("w0"), nonlinear, Linear("w1")}, {{"w0", {4, 3}}, {"w1", {5, 4}}}, 6);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (std::size_t tensor : {0, 1}) {
        Tensors gradients;
        const float old = std::exchange(problem.weights[tensor][3], bad);
        // tanh makes a plain 1 of an infinity: only NaN is bound to show there.
        if (std::isnan(bad) || tensor == 1) {
          EXPECT_FALSE(std::isfinite(problem.Gradient(gradients)));
          EXPECT_FALSE(std::isfinite(problem.Evaluate().loss));
        }
        problem.weights[tensor][3] = old;
      }
    }
    problem.weights[0][3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(problem.Evaluate().accuracy, 0);  // a row without a loss is not right by luck
  }
}

// Loss, evaluation and gradient with all memory shifted by `shift` floats.
Tensors Shifted(Problem& problem, std::size_t shift) {
  const auto copy = [shift](const std::vector<float>& values) {
    std::vector<float> moved(shift);
    moved.insert(moved.end(), values.begin(), values.end());
    return moved;
  };
  const std::vector<float> inputs = copy(problem.inputs);
  Tensors weights;
  Tensors gradients;
  std::vector<In> in;
  std::vector<Out> out;
  for (const auto& weight : problem.weights) {
    weights.push_back(copy(weight));
    gradients.emplace_back(shift + weight.size());
  }
  for (const auto& weight : weights) in.push_back(In(weight).subspan(shift));
  for (auto& gradient : gradients) out.push_back(Out(gradient).subspan(shift));
  const Batch batch = {problem.rows, In(inputs).subspan(shift), problem.labels};
  const double loss = problem.model->Gradient(in, batch, out);
  const Evaluation evaluation = problem.model->Evaluate(in, batch);
  for (auto& gradient : gradients)
    gradient.erase(gradient.begin(), gradient.begin() + static_cast<std::ptrdiff_t>(shift));
  gradients.push_back({static_cast<float>(loss), static_cast<float>(evaluation.loss)});
  return gradients;
}

TEST(ModelTest, SameBitsForAnyAlignment) {
  for (const std::int64_t width : {1, 2, 3, 5, 17, 64, 301}) {
    for (const std::size_t rows : {1, 3, 16, 300}) {
      Problem problem({Linear("w0", "b0"), Tanh(), Linear("w1", "b1")},
                      {{"w0", {width, 7}}, {"b0", {width}}, {"w1", {5, width}}, {"b1", {5}}}, rows);
      const Tensors expected = Shifted(problem, 0);
      for (const std::size_t shift : {1, 2, 3}) {
        ASSERT_EQ(Shifted(problem, shift), expected) << width << " x " << rows << " + " << shift;
      }
    }
  }
}

TEST(ModelTest, ResultsDoNotDependOnEarlierCalls) {
  const ModelGraph graph = {Linear("w0"), Tanh(), Linear("w1")};
  const std::vector<TensorSpec> specs = {{"w0", {6, 8}}, {"w1", {4, 6}}};
  Problem small(graph, specs, 3);
  Problem large(graph, specs, 400);
  Tensors small_gradients;
  Tensors large_gradients;
  const double small_loss = small.Gradient(small_gradients);
  const double large_loss = large.Gradient(large_gradients);
  std::swap(small.model, large.model);  // each workspace now meets the other size
  Tensors again;
  EXPECT_EQ(small.Gradient(again), small_loss);
  EXPECT_EQ(again, small_gradients);
  EXPECT_EQ(large.Gradient(again), large_loss);
  EXPECT_EQ(again, large_gradients);
}

TEST(ModelTest, DescribesItself) {
  Problem problem({Relu(), Linear("w", "b")}, {{"b", {5}}, {"w", {5, 7}}}, 1);
  EXPECT_EQ(problem.model->features(), 7U);
  EXPECT_EQ(problem.model->classes(), 5U);
  EXPECT_EQ(problem.model->parameters(), 40U);
  EXPECT_EQ(
      std::vector<TensorSpec>(problem.model->tensors().begin(), problem.model->tensors().end()),
      problem.specs);
  EXPECT_EQ(NameOf(Kind::kLinear), "linear");
  EXPECT_EQ(NameOf(Kind::kRelu), "relu");
  EXPECT_EQ(NameOf(Kind::kTanh), "tanh");
}

TEST(ModelDeathTest, ChecksItsCaller) {
  Problem problem({Linear("w")}, {{"w", {3, 2}}}, 4);
  const std::vector<In> weights = Ins(problem.weights);
  const auto evaluate = [&](const Batch& batch) { problem.model->Evaluate(weights, batch); };
  const std::vector<std::int32_t> high = {0, 1, 2, 3};
  const std::vector<std::int32_t> low = {0, 1, 2, -1};
  EXPECT_DEATH(evaluate({4, problem.inputs, high}), "check failed");
  EXPECT_DEATH(evaluate({4, problem.inputs, low}), "check failed");
  EXPECT_DEATH(evaluate({4, In(problem.inputs).first(7), problem.labels}), "check failed");
  EXPECT_DEATH(evaluate({3, problem.inputs, problem.labels}), "check failed");
  EXPECT_DEATH(evaluate({}), "check failed");
  EXPECT_DEATH(problem.model->Evaluate({}, problem.batch()), "check failed");
  EXPECT_DEATH(problem.model->Gradient(weights, problem.batch(), {}), "check failed");
}

}  // namespace
}  // namespace slimgrad::sim
