#include "sim/model_graph.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace slimgrad::sim {
namespace {

using Kind = ModelOp::Kind;

constexpr std::size_t kMaxOps = 1000;

class GraphReader {
 public:
  explicit GraphReader(std::span<const TensorSpec> tensors) : tensors_(tensors) {}

  Status IndexTensors() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      SLIMGRAD_RETURN_IF_ERROR(Validate(tensors_[i]));
      if (!numbers_.emplace(tensors_[i].name, i).second) {
        return InvalidArgument("tensor '" + tensors_[i].name +
                               "': expected a unique name, found it twice");
      }
    }
    users_.assign(tensors_.size(), kNoTensor);
    return {};
  }

  // Appends the layer of `op`, whose input is `width` wide if that is known, and updates the width.
  Status Add(const ModelOp& op, std::optional<std::size_t>& width) {
    Layer layer;
    layer.kind = op.kind;
    if (op.kind == Kind::kLinear) {
      SLIMGRAD_RETURN_IF_ERROR(ReadLinear(op, width, layer));
      width = layer.out;
    } else if (!op.weight.empty() || !op.bias.empty()) {
      return InvalidArgument("expected no weight and no bias, found '" + op.weight + op.bias + "'");
    }
    layers_.push_back(layer);
    return {};
  }

  Status CheckAllUsed() const {
    for (std::size_t i = 0; i < users_.size(); ++i) {
      if (users_[i] == kNoTensor) {
        return Mismatch("tensor '" + tensors_[i].name +
                        "': expected an op that uses it, found none");
      }
    }
    return {};
  }

  // Gives the elementwise layers their widths, known once there is a linear one.
  std::vector<Layer> Finish() {
    const auto first = std::find_if(layers_.begin(), layers_.end(),
                                    [](const Layer& layer) { return layer.kind == Kind::kLinear; });
    std::size_t width = first->in;
    for (Layer& layer : layers_) {
      if (layer.kind != Kind::kLinear) layer.in = layer.out = width;
      width = layer.out;
    }
    return std::move(layers_);
  }

 private:
  Status ReadLinear(const ModelOp& op, std::optional<std::size_t> width, Layer& layer) {
    SLIMGRAD_RETURN_IF_ERROR(Take("weight", op.weight, layer.weight));
    const auto& shape = tensors_[layer.weight].shape;
    const bool fits = shape.size() == 2 && shape[0] > 0 && shape[1] > 0 &&
                      (!width || std::cmp_equal(shape[1], *width));
    if (!fits) {
      return Mismatch("weight '" + op.weight + "': shape: expected [out, " +
                      (width ? std::to_string(*width) : "in") + "], each >= 1, found " +
                      ShapeText(shape));
    }
    layer.out = static_cast<std::size_t>(shape[0]);
    layer.in = static_cast<std::size_t>(shape[1]);
    if (op.bias.empty()) return {};
    SLIMGRAD_RETURN_IF_ERROR(Take("bias", op.bias, layer.bias));
    const auto& found = tensors_[layer.bias].shape;
    if (found == std::vector<std::int64_t>{shape[0]}) return {};
    return Mismatch("bias '" + op.bias + "': shape: expected [" + std::to_string(shape[0]) +
                    "], found " + ShapeText(found));
  }

  // The number of the tensor called `name`, which from now on belongs to the op being read.
  Status Take(std::string_view field, const std::string& name, std::size_t& number) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      return Mismatch(std::string(field) + ": expected the name of a tensor, found '" + name + "'");
    }
    number = found->second;
    if (users_[number] != kNoTensor) {
      return Mismatch(std::string(field) + ": expected a tensor that is used once, found '" + name +
                      "', which op " + std::to_string(users_[number]) + " uses");
    }
    users_[number] = layers_.size();
    return {};
  }

  std::span<const TensorSpec> tensors_;
  std::map<std::string_view, std::size_t> numbers_;
  std::vector<std::size_t> users_;  // the op that uses each tensor
  std::vector<Layer> layers_;
};

}  // namespace

std::string_view NameOf(ModelOp::Kind kind) {
  switch (kind) {
    case Kind::kLinear: return "linear";
    case Kind::kRelu: return "relu";
    case Kind::kTanh: return "tanh";
  }
  return "?";
}

Result<std::vector<Layer>> ReadGraph(const ModelGraph& graph, std::span<const TensorSpec> tensors,
                                     std::optional<std::size_t> features,
                                     std::optional<std::size_t> classes) {
  if (graph.empty() || graph.size() > kMaxOps) {
    return InvalidArgument("graph: expected 1 to 1000 ops, found " + std::to_string(graph.size()));
  }
  GraphReader reader(tensors);
  SLIMGRAD_RETURN_IF_ERROR(reader.IndexTensors());
  std::optional<std::size_t> width = features;
  bool linear = false;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const std::string where =
        "op " + std::to_string(i) + " (" + std::string(NameOf(graph[i].kind)) + ")";
    SLIMGRAD_RETURN_IF_ERROR(reader.Add(graph[i], width).In(where));
    linear = linear || graph[i].kind == Kind::kLinear;
  }
  if (!linear) return InvalidArgument("graph: expected at least one linear op, found none");
  SLIMGRAD_RETURN_IF_ERROR(reader.CheckAllUsed());
  if (classes && *width != *classes) {
    return Mismatch("op " + std::to_string(graph.size() - 1) + " (the last): expected " +
                    std::to_string(*classes) + " outputs, one a class, found " +
                    std::to_string(*width));
  }
  return reader.Finish();
}

}  // namespace slimgrad::sim
