// The data set of a trace: what is refused by name when a trace is opened.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/trace.h"
#include "tests/sim/trace_fixture.h"

namespace slimgrad::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- Data.

class TraceDataTest : public TraceTest {
 protected:
  // The error after `change` to the data's entries.
  template <class Change>
  std::string Error(Change change) {
    auto entries = made_.data();
    change(entries);
    WriteTensors("data.safetensors", entries);
    return OpenError().message();
  }
  static constexpr std::size_t kInputs = 0, kLabels = 1, kEvalInputs = 2, kEvalLabels = 3,
                               kBatches = 4;
};

TEST_F(TraceDataTest, Shapes) {
  EXPECT_EQ(Error([](auto&) {}), "");
  EXPECT_EQ(Error([](auto& e) { e.resize(2); }), "");  // evaluation set and batches are optional
  EXPECT_THAT(
      Error([](auto& e) { e.erase(e.begin()); }),
      HasSubstr("\"train_inputs\": expected U8 or F32 [rows >= 1, features >= 1], found none"));
  EXPECT_THAT(Error([](auto& e) { e[kInputs].shape = {12}; }),
              HasSubstr("\"train_inputs\": expected"));
  EXPECT_THAT(Error([](auto& e) { e[kInputs].dtype = DType::kI8; }), HasSubstr("found I8 [4, 3]"));
  EXPECT_THAT(Error([](auto& e) {
                e[kInputs].shape = {2, 6};
              }),
              HasSubstr("\"train_labels\": expected U8, I32 or I64 [2]"));
  EXPECT_THAT(Error([](auto& e) {
                e[kLabels].shape = {4, 1};
              }),
              HasSubstr("expected U8, I32 or I64 [4], found U8 [4, 1]"));
  EXPECT_THAT(Error([](auto& e) { e.erase(e.begin() + kEvalLabels); }),
              HasSubstr("\"eval_labels\": expected"));
  EXPECT_THAT(Error([](auto& e) { e.erase(e.begin() + kEvalInputs); }),
              HasSubstr("\"eval_inputs\": expected"));
  EXPECT_THAT(Error([](auto& e) {
                e[kEvalInputs].shape = {3, 2};
                e[kEvalLabels] = {"eval_labels", DType::kU8, {3}, e[kLabels].bytes.first(3)};
              }),
              HasSubstr("expected, as in training, U8 inputs with 3 features"));
  EXPECT_THAT(Error([](auto& e) {
                e[kBatches].shape = {3, 4};
              }),
              HasSubstr("\"batches\": expected U16 or I32 [3, 2, batch >= 1]"));
  EXPECT_THAT(Error([](auto& e) {
                e[kBatches].shape = {2, 3, 2};
              }),
              HasSubstr("found U16 [2, 3, 2]"));
  EXPECT_THAT(Error([](auto& e) {
                e[kBatches] = {"batches", DType::kU16, {3, 2, 0}, {}};
              }),
              HasSubstr("batch >= 1"));
}

TEST_F(TraceDataTest, Values) {
  made_.labels[2] = 2;
  EXPECT_THAT(
      Error([](auto&) {}),
      HasSubstr("data.safetensors: tensor \"train_labels\": element 2: expected 0 to 1, found 2"));
  made_.labels[2] = 1;
  made_.batches[7] = 4;
  EXPECT_THAT(Error([](auto&) {}),
              HasSubstr("tensor \"batches\": element 7: expected 0 to 3, found 4"));
  made_.batches[7] = 0;
  const std::vector<std::int64_t> wide = {0, 1, -1, 0};
  const auto widen = [&](auto& e) {
    e[kLabels] = {"train_labels", DType::kI64, {4}, std::as_bytes(std::span(wide))};
    e.resize(2);
  };
  EXPECT_THAT(Error(widen), HasSubstr("element 2: expected 0 to 1, found -1"));
  // Without `classes` the model's logits bound the labels.
  made_.labels[1] = 9;
  Replace("trace.json", "\"classes\":2,", "");
  EXPECT_THAT(Error([](auto&) {}), HasSubstr("element 1: expected 0 to 1, found 9"));
}

TEST_F(TraceDataTest, TheModelFitsTheFeatures) {
  const auto narrow = [](auto& e) {
    e[kInputs] = {"train_inputs", DType::kU8, {4, 2}, e[kInputs].bytes.first(8)};
    e.resize(2);
  };
  EXPECT_THAT(Error(narrow), AllOf(HasSubstr("model.graph: "), HasSubstr("expected")));
}

TEST_F(TraceDataTest, PositionsWithoutAGraph) {
  const std::string json = Read("trace.json");
  const std::size_t graph = json.find("\"graph\":[");
  const std::size_t end = json.find(']', graph);
  Write("trace.json", json.substr(0, graph) + "\"graph\":null" + json.substr(end + 1));
  const std::vector<std::uint8_t> labels(12, 1);
  const std::vector<std::uint8_t> bytes(12, 1);
  WriteTensors("data.safetensors",
               {{"train_inputs", DType::kU8, {4, 3}, std::as_bytes(std::span(bytes))},
                {"train_labels", DType::kU8, {4, 3}, std::as_bytes(std::span(labels))}});
  const Result<Trace> trace = Trace::Open(folder_);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->data()->train.positions, 3U);
  EXPECT_EQ(trace->data()->train.Label(3, 2), 1);
}

}  // namespace
}  // namespace slimgrad::sim
