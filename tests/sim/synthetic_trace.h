// A small complete trace, made up: one linear layer 3 -> 2, 2 workers, 3 steps. For tests of what
// reads traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/trace_writer.h"

namespace slimgrad::sim {

// Base of fixtures: a folder of the test's own, removed at its end.
class TraceFolder : public testing::Test {
 protected:
  TraceFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            (std::string(test->test_suite_name()) + "." + test->name());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    folder_ = root_ / "trace";
  }
  ~TraceFolder() override { std::filesystem::remove_all(root_); }

  std::string Read(const std::string& file) const {
    std::ifstream stream(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void Write(const std::string& file, const std::string& bytes) const {
    std::ofstream(folder_ / file, std::ios::binary) << bytes;
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = Read(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << text;
    Write(file, text.replace(at, from.size(), to));
  }
  // A tensor file with these contents in place of what was there.
  void WriteTensors(const std::string& file, const std::vector<SafetensorsEntry>& entries) const {
    const std::vector<std::byte> bytes = SerializeSafetensors(entries).value();
    Write(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  std::filesystem::path root_;
  std::filesystem::path folder_;
};

// Owns the numbers that the trace is written from.
struct SyntheticTrace {
  static constexpr std::int64_t kSteps = 3;
  static constexpr std::int64_t kWorld = 2;

  TraceSchema schema;
  std::vector<float> weight = {0.5F, -1, 2, 3, -4, 0.25F};
  std::vector<float> bias = {0, 1};
  std::vector<std::uint8_t> inputs = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16};
  std::vector<std::uint8_t> labels = {0, 1, 1, 0};
  std::vector<std::uint16_t> batches = {0, 1, 2, 3, 3, 2, 1, 0, 0, 2, 1, 3};
  std::vector<float> ready = std::vector<float>(kSteps * kWorld * 2, 12.5F);
  std::vector<float> forward = std::vector<float>(kSteps * kWorld, 3);
  std::vector<float> backward = std::vector<float>(kSteps * kWorld, 4);
  std::vector<float> optimizer = std::vector<float>(kSteps, 1);

  SyntheticTrace() {
    schema.name = "synthetic";
    schema.world_size = kWorld;
    schema.steps = kSteps;
    schema.tensors = {{"w", {2, 3}}, {"b", {2}}};
    schema.optimizer.momentum = 0.9;
    schema.learning_rates = {0.1, 0.05, 0.025};
    schema.cross_entropy = true;
    schema.model = TraceModel{"softmax", 8, ModelGraph{{ModelOp::Kind::kLinear, "w", "b"}}};
    schema.results.final_eval_accuracy = 0.75;
    schema.results.train_loss = {0.7, 0.6, 0.5};
    schema.provenance = {{"seed", "1"}};
    schema.license = {{"data", "none needed"}};
  }

  // Distinct, reproducible, not all of them round in binary.
  std::vector<float> Gradient(std::int64_t step, std::int64_t rank, std::size_t tensor) const {
    std::vector<float> values(schema.tensors[tensor].numel());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] =
          static_cast<float>(step * 100 + rank * 10) + 0.1F * static_cast<float>(i + tensor);
    }
    return values;
  }

  std::vector<In> weights() const { return {weight, bias}; }

  std::vector<SafetensorsEntry> data() const {
    return {{"train_inputs", DType::kU8, {4, 3}, std::as_bytes(std::span(inputs))},
            {"train_labels", DType::kU8, {4}, std::as_bytes(std::span(labels))},
            {"eval_inputs", DType::kU8, {2, 3}, std::as_bytes(std::span(inputs).first(6))},
            {"eval_labels", DType::kU8, {2}, std::as_bytes(std::span(labels).first(2))},
            {"batches", DType::kU16, {kSteps, kWorld, 2}, std::as_bytes(std::span(batches))}};
  }

  std::vector<SafetensorsEntry> step(const std::vector<float>& w,
                                     const std::vector<float>& b) const {
    return {{"w", DType::kF32, {2, 3}, std::as_bytes(std::span(w))},
            {"b", DType::kF32, {2}, std::as_bytes(std::span(b))}};
  }

  Status WriteSteps(TraceWriter& writer, std::int64_t steps = kSteps) const {
    for (std::int64_t step = 0; step < steps; ++step) {
      for (std::int64_t rank = 0; rank < kWorld; ++rank) {
        const std::vector<float> w = Gradient(step, rank, 0);
        const std::vector<float> b = Gradient(step, rank, 1);
        SLIMGRAD_RETURN_IF_ERROR(writer.Gradients(
            step, rank, std::vector<ConstView>{ConstView(In(w)), ConstView(In(b))}));
      }
    }
    return {};
  }

  Status WriteTo(const std::filesystem::path& folder) const {
    SLIMGRAD_ASSIGN_OR_RETURN(TraceWriter writer, TraceWriter::Create(folder, schema));
    SLIMGRAD_RETURN_IF_ERROR(WriteSteps(writer));
    SLIMGRAD_RETURN_IF_ERROR(writer.InitialWeights(weights()));
    SLIMGRAD_RETURN_IF_ERROR(writer.FinalWeights(weights()));
    TraceDataSource source;
    source.name = "made up";
    source.input_scale = 0.0625;
    source.classes = 2;
    SLIMGRAD_RETURN_IF_ERROR(writer.Data(source, data()));
    SLIMGRAD_RETURN_IF_ERROR(writer.Timing({ready, forward, backward, optimizer}));
    return writer.Finish();
  }
};

}  // namespace slimgrad::sim
