#include "sim/model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

// One thread, whatever the compiler's flags: threads are the caller's.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "sim/model_graph.h"

namespace slimgrad::sim {
namespace {

using Kind = ModelOp::Kind;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;
using MutableMap = Eigen::Map<Matrix>;

// Examples a pass: it bounds the workspace, and the length of the sums over examples.
constexpr std::size_t kChunkRows = 256;
// Terms a product sums at once. Eigen cuts longer sums by the size of the caches that it finds, and
// the cut changes the rounding; this many fit any cache (it would cut at 338 where the first level
// has 16 KiB).
constexpr Eigen::Index kChunkDepth = 256;

Eigen::Index Signed(std::size_t n) { return static_cast<Eigen::Index>(n); }

ConstMap AsMatrix(In values, std::size_t rows, std::size_t columns) {
  return {values.data(), Signed(rows), Signed(columns)};
}

MutableMap AsMatrix(Out values, std::size_t rows, std::size_t columns) {
  return {values.data(), Signed(rows), Signed(columns)};
}

// c += a * b in runs of kChunkDepth terms.
template <class A, class B>
void AddProduct(const A& a, const B& b, MutableMap c) {
  for (Eigen::Index k = 0; k < a.cols(); k += kChunkDepth) {
    const Eigen::Index n = std::min(kChunkDepth, a.cols() - k);
    c.noalias() += a.middleCols(k, n) * b.middleRows(k, n);
  }
}

// The loss of one row of logits, in nats: log(sum(exp(z))) - z[label], with the largest z taken out
// so that nothing overflows. Turns the logits into probabilities.
double SoftmaxInPlace(Out logits, std::size_t label) {
  float largest = logits[0];
  for (const float z : logits) largest = z > largest ? z : largest;
  const double label_logit = static_cast<double>(logits[label]) - largest;
  double sum = 0;
  for (float& z : logits) {
    z = std::exp(z - largest);
    sum += z;
  }
  for (float& z : logits) z = static_cast<float>(z / sum);
  return std::log(sum) - label_logit;
}

std::size_t LabelOf(const Batch& batch, std::size_t row, std::size_t classes) {
  SLIMGRAD_CHECK(std::cmp_greater_equal(batch.labels[row], 0) &&
                 std::cmp_less(batch.labels[row], classes));
  return static_cast<std::size_t>(batch.labels[row]);
}

class ChainModel final : public Model {
 public:
  ChainModel(std::vector<Layer> layers, std::span<const TensorSpec> tensors)
      : layers_(std::move(layers)), tensors_(tensors.begin(), tensors.end()) {
    for (const Layer& layer : layers_) widest_ = std::max({widest_, layer.in, layer.out});
    const auto first = std::find_if(layers_.begin(), layers_.end(),
                                    [](const Layer& layer) { return layer.kind == Kind::kLinear; });
    first_linear_ = static_cast<std::size_t>(first - layers_.begin());
    outputs_.resize(layers_.size());
  }

  std::span<const TensorSpec> tensors() const override { return tensors_; }
  std::size_t features() const override { return layers_.front().in; }
  std::size_t classes() const override { return layers_.back().out; }

  double Gradient(std::span<const In> weights, const Batch& batch,
                  std::span<const Out> gradients) override {
    Prepare(weights, batch);
    SLIMGRAD_CHECK(gradients.size() == tensors_.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      SLIMGRAD_CHECK(gradients[i].size() == weights[i].size());
      std::fill(gradients[i].begin(), gradients[i].end(), 0.0F);
    }
    double loss = 0;
    for (std::size_t begin = 0; begin < batch.rows; begin += kChunkRows) {
      const std::size_t rows = std::min(kChunkRows, batch.rows - begin);
      const In inputs = batch.inputs.subspan(begin * features(), rows * features());
      Forward(weights, inputs, rows);
      for (std::size_t r = 0; r < rows; ++r) loss += LossGradient(batch, begin, r);
      Backward(weights, inputs, rows, gradients);
    }
    return loss / static_cast<double>(batch.rows);
  }

  Evaluation Evaluate(std::span<const In> weights, const Batch& batch) override {
    Prepare(weights, batch);
    double loss = 0;
    std::size_t right = 0;
    for (std::size_t begin = 0; begin < batch.rows; begin += kChunkRows) {
      const std::size_t rows = std::min(kChunkRows, batch.rows - begin);
      Forward(weights, batch.inputs.subspan(begin * features(), rows * features()), rows);
      for (std::size_t r = 0; r < rows; ++r) {
        const Out logits = Row(r);
        const std::size_t label = LabelOf(batch, begin + r, classes());
        const auto guess = std::max_element(logits.begin(), logits.end()) - logits.begin();
        const double row_loss = SoftmaxInPlace(logits, label);
        loss += row_loss;
        if (std::cmp_equal(guess, label) && std::isfinite(row_loss)) ++right;
      }
    }
    const auto n = static_cast<double>(batch.rows);
    return {loss / n, static_cast<double>(right) / n};
  }

 private:
  // Checks the call and grows the workspace to what it needs.
  void Prepare(std::span<const In> weights, const Batch& batch) {
    SLIMGRAD_CHECK(weights.size() == tensors_.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      SLIMGRAD_CHECK(weights[i].size() == tensors_[i].numel());
    }
    SLIMGRAD_CHECK(batch.rows > 0 && batch.labels.size() == batch.rows);
    SLIMGRAD_CHECK(batch.inputs.size() / batch.rows == features() &&
                   batch.inputs.size() % batch.rows == 0);
    const std::size_t rows = std::min(kChunkRows, batch.rows);
    if (rows <= workspace_rows_) return;
    for (std::size_t i = 0; i < layers_.size(); ++i) outputs_[i].resize(rows * layers_[i].out);
    delta_.resize(rows * widest_);
    next_delta_.resize(rows * widest_);
    workspace_rows_ = rows;
  }

  // The logits of row r of the chunk.
  Out Row(std::size_t r) { return Out(outputs_.back()).subspan(r * classes(), classes()); }

  // What layer i reads.
  In InputOf(std::size_t i, In inputs) const { return i == 0 ? inputs : In(outputs_[i - 1]); }

  void Forward(std::span<const In> weights, In inputs, std::size_t rows) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const In x = InputOf(i, inputs).first(rows * layer.in);
      const Out y = Out(outputs_[i]).first(rows * layer.out);
      switch (layer.kind) {
        case Kind::kLinear:
          StartWithBias(layer, weights, y);
          AddProduct(AsMatrix(x, rows, layer.in),
                     AsMatrix(weights[layer.weight], layer.out, layer.in).transpose(),
                     AsMatrix(y, rows, layer.out));
          break;
        case Kind::kRelu:  // written so that a NaN stays one
          std::transform(x.begin(), x.end(), y.begin(), [](float v) { return v <= 0 ? 0 : v; });
          break;
        case Kind::kTanh:
          std::transform(x.begin(), x.end(), y.begin(), [](float v) { return std::tanh(v); });
          break;
      }
    }
  }

  static void StartWithBias(const Layer& layer, std::span<const In> weights, Out y) {
    if (layer.bias == kNoTensor) {
      std::fill(y.begin(), y.end(), 0.0F);
      return;
    }
    const In bias = weights[layer.bias];
    for (auto row = y.begin(); row != y.end(); row += Signed(layer.out)) {
      std::copy(bias.begin(), bias.end(), row);
    }
  }

  // The loss of row r of the chunk that starts at row `begin` of the batch; its row of delta_
  // becomes the derivative of the batch's mean loss by the logits. These stay as they are: the last
  // op may need its output.
  double LossGradient(const Batch& batch, std::size_t begin, std::size_t r) {
    const std::size_t label = LabelOf(batch, begin + r, classes());
    const Out logits = Row(r);
    const Out delta = Out(delta_).subspan(r * classes(), classes());
    std::copy(logits.begin(), logits.end(), delta.begin());
    const double loss = SoftmaxInPlace(delta, label);
    delta[label] -= 1;
    for (float& d : delta) d /= static_cast<float>(batch.rows);
    return loss;
  }

  // Adds this chunk's part to the gradients. In: the last output holds the derivative by the
  // logits.
  void Backward(std::span<const In> weights, In inputs, std::size_t rows,
                std::span<const Out> gradients) {
    for (std::size_t i = layers_.size(); i-- > first_linear_;) {
      const Layer& layer = layers_[i];
      const Out delta = Out(delta_).first(rows * layer.out);
      if (layer.kind == Kind::kLinear) {
        AddLinearGradient(layer, InputOf(i, inputs), rows, delta, gradients);
        if (i > first_linear_) PassDown(weights[layer.weight], layer, rows);
        continue;
      }
      const In y = In(outputs_[i]);
      for (std::size_t j = 0; j < delta.size(); ++j) {
        if (layer.kind == Kind::kTanh) {
          delta[j] *= 1 - y[j] * y[j];
        } else if (y[j] <= 0) {
          delta[j] = 0;
        }
      }
    }
  }

  static void AddLinearGradient(const Layer& layer, In x, std::size_t rows, In delta,
                                std::span<const Out> gradients) {
    AddProduct(AsMatrix(delta, rows, layer.out).transpose(), AsMatrix(x, rows, layer.in),
               AsMatrix(gradients[layer.weight], layer.out, layer.in));
    if (layer.bias == kNoTensor) return;
    const Out bias = gradients[layer.bias];
    for (auto row = delta.begin(); row != delta.end(); row += Signed(layer.out)) {
      std::transform(bias.begin(), bias.end(), row, bias.begin(), std::plus<>());
    }
  }

  // From the derivative by a linear layer's output to that by its input.
  void PassDown(In weight, const Layer& layer, std::size_t rows) {
    const Out below = Out(next_delta_).first(rows * layer.in);
    std::fill(below.begin(), below.end(), 0.0F);
    AddProduct(AsMatrix(In(delta_), rows, layer.out), AsMatrix(weight, layer.out, layer.in),
               AsMatrix(below, rows, layer.in));
    delta_.swap(next_delta_);
  }

  std::vector<Layer> layers_;
  std::vector<TensorSpec> tensors_;
  std::size_t widest_ = 0;
  std::size_t first_linear_ = 0;  // nothing below it has a gradient

  // The workspace, for chunks of workspace_rows_ examples.
  std::size_t workspace_rows_ = 0;
  std::vector<std::vector<float>> outputs_;  // of each layer
  std::vector<float> delta_;                 // derivative of the loss by the current layer's output
  std::vector<float> next_delta_;
};

}  // namespace

std::size_t Model::parameters() const {
  std::size_t sum = 0;
  for (const TensorSpec& tensor : tensors()) sum += tensor.numel();
  return sum;
}

Result<std::unique_ptr<Model>> MakeModel(const ModelGraph& graph,
                                         std::span<const TensorSpec> tensors,
                                         std::optional<std::size_t> features,
                                         std::optional<std::size_t> classes) {
  SLIMGRAD_ASSIGN_OR_RETURN(std::vector<Layer> layers,
                            ReadGraph(graph, tensors, features, classes));
  return std::unique_ptr<Model>(std::make_unique<ChainModel>(std::move(layers), tensors));
}

}  // namespace slimgrad::sim
