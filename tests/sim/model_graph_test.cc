// Graphs that MakeModel refuses, and how it says so.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/model.h"

namespace slimgrad::sim {
namespace {

using Kind = ModelOp::Kind;

ModelOp Linear(std::string weight, std::string bias = "") {
  return {Kind::kLinear, std::move(weight), std::move(bias)};
}
ModelOp Relu() { return {Kind::kRelu, "", ""}; }

void ExpectRefused(const Result<std::unique_ptr<Model>>& model, Code code,
                   const std::string& message) {
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), code);
  EXPECT_EQ(model.status().message(), message);
}

TEST(ModelGraphTest, RefusesGraphsThatAreNone) {
  const std::vector<TensorSpec> w = {{"w", {2, 3}}};
  ExpectRefused(MakeModel({}, w), Code::kInvalidArgument, "graph: expected 1 to 1000 ops, found 0");
  ExpectRefused(MakeModel(ModelGraph(1001, Relu()), w), Code::kInvalidArgument,
                "graph: expected 1 to 1000 ops, found 1001");
  ExpectRefused(MakeModel({Relu()}, w, 3, 3), Code::kInvalidArgument,
                "graph: expected at least one linear op, found none");
  ExpectRefused(MakeModel({Linear("w"), {Kind::kTanh, "w", ""}}, w), Code::kInvalidArgument,
                "op 1 (tanh): expected no weight and no bias, found 'w'");
}

TEST(ModelGraphTest, RefusesTensorsThatAreNone) {
  const std::vector<TensorSpec> twice = {{"w", {2, 3}}, {"w", {2, 3}}};
  ExpectRefused(MakeModel({Linear("w")}, twice), Code::kInvalidArgument,
                "tensor 'w': expected a unique name, found it twice");
  EXPECT_FALSE(MakeModel({Linear("w")}, std::vector<TensorSpec>{{"w", {-2, 3}}}).ok());
}

TEST(ModelGraphTest, RefusesTensorsThatTheGraphDoesNotUseOnce) {
  const std::vector<TensorSpec> specs = {{"w0", {3, 3}}, {"w1", {3, 3}}, {"b", {3}}};
  ExpectRefused(MakeModel({Linear("w0"), Linear("v")}, specs), Code::kMismatch,
                "op 1 (linear): weight: expected the name of a tensor, found 'v'");
  ExpectRefused(MakeModel({Linear("w0", "c")}, specs), Code::kMismatch,
                "op 0 (linear): bias: expected the name of a tensor, found 'c'");
  ExpectRefused(
      MakeModel({Linear("w0"), Relu(), Linear("w0")}, specs), Code::kMismatch,
      "op 2 (linear): weight: expected a tensor that is used once, found 'w0', which op 0 uses");
  ExpectRefused(
      MakeModel({Linear("w0", "b"), Linear("w1", "b")}, specs), Code::kMismatch,
      "op 1 (linear): bias: expected a tensor that is used once, found 'b', which op 0 uses");
  ExpectRefused(MakeModel({Linear("w0"), Linear("w1")}, specs), Code::kMismatch,
                "tensor 'b': expected an op that uses it, found none");
}

TEST(ModelGraphTest, RefusesShapesThatDoNotFit) {
  const std::vector<TensorSpec> specs = {{"w0", {4, 3}}, {"w1", {5, 4}}, {"b", {5}}};
  const ModelGraph graph = {Linear("w0"), Relu(), Linear("w1", "b")};
  EXPECT_TRUE(MakeModel(graph, specs, 3, 5).ok());
  ExpectRefused(MakeModel(graph, specs, 7), Code::kMismatch,
                "op 0 (linear): weight 'w0': shape: expected [out, 7], each >= 1, found [4, 3]");
  ExpectRefused(MakeModel(graph, specs, 3, 6), Code::kMismatch,
                "op 2 (the last): expected 6 outputs, one a class, found 5");
  ExpectRefused(MakeModel({Linear("w1"), Linear("w0")}, specs), Code::kMismatch,
                "op 1 (linear): weight 'w0': shape: expected [out, 5], each >= 1, found [4, 3]");
  ExpectRefused(MakeModel({Linear("b")}, specs), Code::kMismatch,
                "op 0 (linear): weight 'b': shape: expected [out, in], each >= 1, found [5]");
  ExpectRefused(MakeModel({Linear("w0", "b")}, specs), Code::kMismatch,
                "op 0 (linear): bias 'b': shape: expected [4], found [5]");
  ExpectRefused(MakeModel({Linear("w")}, std::vector<TensorSpec>{{"w", {0, 3}}}), Code::kMismatch,
                "op 0 (linear): weight 'w': shape: expected [out, in], each >= 1, found [0, 3]");
  ExpectRefused(MakeModel({Linear("w")}, std::vector<TensorSpec>{{"w", {3, 0}}}, 0),
                Code::kMismatch,
                "op 0 (linear): weight 'w': shape: expected [out, 0], each >= 1, found [3, 0]");
}

}  // namespace
}  // namespace slimgrad::sim
