// Traces on the disk: what is written reads back, what is damaged is refused by name. trace.json
// itself is tested in trace_schema_test.cc.
#include "sim/trace.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/trace_fixture.h"

namespace slimgrad::sim {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

TEST_F(TraceTest, GradientsReadBackBitForBit) {
  const Trace trace = Trace::Open(folder_).value();
  for (std::int64_t step = 0; step < 3; ++step) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      StepGradients opened = trace.Gradients(step, rank).value();
      const StepGradients gradients = std::move(opened);
      ASSERT_EQ(gradients.tensors().size(), 2U);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_THAT(gradients.tensors()[i].As<float>(),
                    ElementsAreArray(made_.Gradient(step, rank, i)));
      }
    }
  }
  EXPECT_DEATH(static_cast<void>(trace.Gradients(3, 0)), "check failed");
  EXPECT_DEATH(static_cast<void>(trace.Gradients(0, 2)), "check failed");
}

TEST_F(TraceTest, TheRestReadsBack) {
  const Trace trace = Trace::Open(folder_).value();
  ASSERT_EQ(trace.initial_weights().size(), 2U);
  EXPECT_THAT(trace.initial_weights()[0], ElementsAreArray(made_.weight));
  EXPECT_THAT(trace.final_weights()[1], ElementsAreArray(made_.bias));
  EXPECT_THAT(trace.timing().ready_us, ElementsAreArray(made_.ready));
  EXPECT_THAT(trace.timing().optimizer_us, ElementsAreArray(made_.optimizer));

  ASSERT_NE(trace.data(), nullptr);
  const TraceData& data = *trace.data();
  EXPECT_EQ(data.train.rows, 4U);
  std::vector<float> row(3);
  data.train.CopyInputs(3, row);
  EXPECT_THAT(row, ElementsAreArray({9 / 16.0F, 10 / 16.0F, 1.0F}));
  EXPECT_EQ(data.train.Label(2), 1);
  ASSERT_TRUE(data.eval && data.batches);
  EXPECT_EQ(data.eval->rows, 2U);
  EXPECT_EQ(data.batches->batch, 2U);
  EXPECT_EQ(data.batches->Row(1, 0, 1), 2U);
  EXPECT_EQ(data.batches->Row(2, 1, 1), 3U);
  EXPECT_EQ(TraceSchemaText(trace.schema()).value(), Read("trace.json"));
}

TEST_F(TraceTest, SixteenBitGradients) {
  TraceSchema schema = made_.schema;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    schema.gradient_dtype = dtype;
    schema.steps = 1;
    schema.learning_rates = {1};
    schema.results = {};
    const fs::path folder = root_ / std::string(NameOf(dtype));
    TraceWriter writer = TraceWriter::Create(folder, schema).value();
    const std::vector<std::uint16_t> w = {1, 2, 3, 4, 5, 0xFFFF};
    const std::vector<ConstView> views = {{w.data(), 6, dtype, Device::kCpu},
                                          {w.data(), 2, dtype, Device::kCpu}};
    ASSERT_TRUE(writer.Gradients(0, 0, views).ok());
    ASSERT_TRUE(writer.Gradients(0, 1, views).ok());
    ASSERT_TRUE(writer.Finish().ok());
    const Trace trace = Trace::Open(folder).value();
    const StepGradients gradients = trace.Gradients(0, 1).value();
    ASSERT_EQ(gradients.tensors()[0].dtype, dtype);
    EXPECT_EQ(std::memcmp(gradients.tensors()[0].data, w.data(), 12), 0);
    EXPECT_EQ(trace.data(), nullptr);
    EXPECT_TRUE(trace.initial_weights().empty());
  }
}

TEST_F(TraceTest, EqualCallsWriteEqualBytes) {
  ASSERT_TRUE(made_.WriteTo(root_ / "again").ok());
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    const fs::path name = entry.path().lexically_relative(folder_);
    std::ifstream again(root_ / "again" / name, std::ios::binary);
    EXPECT_EQ(Read(name.string()), std::string(std::istreambuf_iterator<char>(again), {})) << name;
    ++files;
  }
  EXPECT_EQ(files, 6 + 5);
}

TEST_F(TraceTest, AnUnfinishedTraceNeverAppears) {
  const fs::path folder = root_ / "unfinished";
  {
    TraceWriter writer = TraceWriter::Create(folder, made_.schema).value();
    ASSERT_TRUE(made_.WriteSteps(writer, 2).ok());
    EXPECT_THAT(writer.Finish().message(), HasSubstr("found none of step 2, rank 0"));
  }
  {
    // What a reader would refuse, the writer does not publish.
    TraceWriter writer = TraceWriter::Create(folder, made_.schema).value();
    ASSERT_TRUE(made_.WriteSteps(writer).ok());
    made_.bias[1] = std::nanf("");
    ASSERT_TRUE(writer.FinalWeights(made_.weights()).ok());
    EXPECT_THAT(writer.Finish().message(), HasSubstr("expected a finite number, found nan"));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
  EXPECT_EQ(TraceWriter::Create(folder_, made_.schema).status().code(), Code::kIo);
  made_.schema.world_size = 0;
  EXPECT_EQ(TraceWriter::Create(folder, made_.schema).status().code(), Code::kInvalidArgument);
}

// ---- What is in place of a trace.

TEST_F(TraceTest, NoFolder) {
  EXPECT_THAT(Trace::Open(root_ / "none").status().message(),
              HasSubstr("none: expected the folder of a trace, found nothing"));
  EXPECT_THAT(Trace::Open(folder_ / "trace.json").status().message(),
              HasSubstr("expected the folder of a trace, found a file"));
  fs::remove(folder_ / "trace.json");
  EXPECT_THAT(OpenError().message(), HasSubstr("trace.json: cannot open: No such file"));
  fs::create_directory(folder_ / "trace.json");
  EXPECT_THAT(OpenError().message(),
              HasSubstr("trace.json: expected a regular file, found a folder"));
}

TEST_F(TraceTest, TextInPlaceOfATrace) {
  Write("trace.json", "Dear reader,\nthis is no trace.\n");
  EXPECT_THAT(OpenError().message(),
              HasSubstr("trace.json: expected JSON, found a parse error at line 1"));
  Write("trace.json", "");
  EXPECT_THAT(OpenError().message(), HasSubstr("trace.json: expected JSON"));
}

TEST_F(TraceTest, JsonBeyond64MiB) {
  fs::resize_file(folder_ / "trace.json", (64U << 20) + 1);
  EXPECT_THAT(OpenError().message(),
              HasSubstr("trace.json: expected at most 67108864 bytes, found 67108865"));
}

// ---- Step files.

TEST_F(TraceTest, AMissingStepIsNamed) {
  fs::remove(folder_ / "steps/00001.001.safetensors");
  EXPECT_THAT(
      OpenError().message(),
      AllOf(
          HasSubstr(
              "steps/00001.001.safetensors: expected the gradients of step 1 of 3 and rank 1 of 2"),
          HasSubstr("found no file")));
  fs::create_directory(folder_ / "steps/00001.001.safetensors");
  EXPECT_THAT(OpenError().message(), HasSubstr("found something that is no regular file"));
}

TEST_F(TraceTest, MoreStepsThanFilesAllocatesNothing) {
  Replace("trace.json", "\"world_size\": 2", "\"world_size\": 65536");
  EXPECT_THAT(OpenError().message(),
              HasSubstr("00000.002.safetensors: expected the gradients of step 0 of 3"));
}

// Before it takes memory for the tensors, a replay knows that they can be there.
TEST_F(TraceTest, TensorsLargerThanTheFilesAreRefusedAtOnce) {
  Replace("trace.json", "[2,3]", "[2,1125899906842624]");
  const Status status = OpenError();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(),
              HasSubstr("steps/00000.000.safetensors: file size: expected at least "
                        "9007199254741000 bytes, which the tensors of trace.json take"));
}

TEST_F(TraceTest, EveryTruncationOfAStepFile) {
  const std::string file = "steps/00002.000.safetensors";
  const std::string bytes = Read(file);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Write(file, bytes.substr(0, size));
    const Status status = StepError();
    ASSERT_EQ(status.code(), Code::kCorrupt) << size;
    ASSERT_THAT(status.message(),
                AllOf(HasSubstr(file + ": "), HasSubstr("expected"), HasSubstr("found")));
  }
  Write(file, bytes);
  EXPECT_TRUE(StepError().ok());
}

TEST_F(TraceTest, AHeaderLongerThanTheFile) {
  const std::string file = "steps/00000.000.safetensors";
  std::string bytes = Read(file);
  bytes[2] = '\x01';
  Write(file, bytes);
  EXPECT_THAT(StepError().message(), HasSubstr(file + ": header length: expected 2 to"));
}

TEST_F(TraceTest, OverlappingAndOutOfRange) {
  const std::string file = "steps/00000.001.safetensors";
  const std::string good = Read(file);
  Replace(file, "[24,32]", "[16,24]");
  EXPECT_THAT(StepError().message(), AllOf(HasSubstr("tensor \"b\""), HasSubstr("they overlap")));
  Write(file, good);
  Replace(file, "[24,32]", "[28,36]");
  EXPECT_THAT(StepError().message(),
              HasSubstr("tensor \"b\": data_offsets: expected begin <= end <= 32, found [28,36]"));
  Write(file, "text in place of a step, no shorter than one");
  EXPECT_THAT(StepError().message(), HasSubstr("header length: expected"));
}

TEST_F(TraceTest, ShapesThatDifferBetweenStepsOrRanks) {
  const std::vector<float> six(6, 1);
  const std::vector<float> two(2, 1);
  const auto wrong = [&](auto change) {
    auto entries = made_.step(six, two);
    change(entries);
    WriteTensors("steps/00002.001.safetensors", entries);
    const Status status = StepError();
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("steps/00002.001.safetensors: tensor "));
    return status.message();
  };
  EXPECT_THAT(wrong([](auto& e) {
                e[0].shape = {3, 2};
              }),
              HasSubstr("\"w\": expected F32 [2, 3], found F32 [3, 2]"));
  EXPECT_THAT(wrong([](auto& e) { e[0].shape = {6}; }),
              HasSubstr("\"w\": expected F32 [2, 3], found F32 [6]"));
  EXPECT_THAT(wrong([](auto& e) {
                e[1].dtype = DType::kF16;
                e[1].shape = {4};
              }),
              HasSubstr("\"b\": expected F32 [2], found F16 [4]"));
  EXPECT_THAT(wrong([](auto& e) { e[1].dtype = DType::kI32; }),
              HasSubstr("\"b\": expected F32 [2], found I32 [2]"));
  EXPECT_THAT(wrong([](auto& e) { e.pop_back(); }),
              HasSubstr("\"b\": expected F32 [2], found none"));
  EXPECT_THAT(wrong([](auto& e) { e[1].name = "c"; }),
              HasSubstr("\"b\": expected F32 [2], found none"));
  EXPECT_THAT(wrong([](auto& e) {
                e.push_back({"c", DType::kF32, {0}, {}});
              }),
              HasSubstr("\"c\": expected only the 2 tensors of trace.json, found one more"));
}

TEST_F(TraceTest, GradientsMayBeNonFinite) {
  const std::vector<float> six(6, std::numeric_limits<float>::infinity());
  const std::vector<float> two(2, std::nanf(""));
  WriteTensors("steps/00000.000.safetensors", made_.step(six, two));
  EXPECT_TRUE(StepError().ok());
}

// ---- Weights and timing.

TEST_F(TraceTest, WeightsAreFiniteFp32OfTheSameShapes) {
  const std::vector<float> two(2, 1);
  std::vector<float> six(6, 1);
  six[4] = std::nanf("");
  WriteTensors("initial.safetensors", made_.step(six, two));
  EXPECT_THAT(
      OpenError().message(),
      HasSubstr(
          "initial.safetensors: tensor \"w\": element 4: expected a finite number, found nan"));
  six[4] = -std::numeric_limits<float>::infinity();
  WriteTensors("initial.safetensors", made_.step(six, two));
  EXPECT_THAT(OpenError().message(), HasSubstr("element 4: expected a finite number, found -inf"));
  six[4] = 1;
  auto entries = made_.step(six, two);
  entries[1].shape = {2, 1};
  WriteTensors("initial.safetensors", entries);
  EXPECT_THAT(OpenError().message(), HasSubstr("tensor \"b\": expected F32 [2], found F32 [2, 1]"));
  fs::remove(folder_ / "initial.safetensors");
  EXPECT_THAT(OpenError().message(), HasSubstr("initial.safetensors: cannot open"));
}

TEST_F(TraceTest, TimesAreFiniteAndNotNegative) {
  const auto error = [&](const char* name, std::vector<std::int64_t> shape,
                         std::vector<float> values) {
    WriteTensors("timing.safetensors",
                 {{name, DType::kF32, std::move(shape), std::as_bytes(std::span(values))}});
    return OpenError().message();
  };
  EXPECT_EQ(error("optimizer_us", {3}, {1, 0, 2}), "");
  EXPECT_EQ(error("something_else", {1}, {-1}), "");
  EXPECT_THAT(error("optimizer_us", {3}, {1, -1, 2}),
              HasSubstr("tensor \"optimizer_us\": element 1: expected a number >= 0, found -1"));
  EXPECT_THAT(error("optimizer_us", {3}, {1, 1, std::nanf("")}),
              HasSubstr("element 2: expected a finite number"));
  EXPECT_THAT(error("optimizer_us", {2}, {1, 1}), HasSubstr("expected F32 [3], found F32 [2]"));
  EXPECT_THAT(error("ready_us", {3, 2}, {1, 1, 1, 1, 1, 1}),
              HasSubstr("expected F32 [3, 2, 2], found F32 [3, 2]"));
}

// ---- The trace that the project ships.

TEST(RecordedTrace, DigitsMlp) {
  const Result<Trace> opened = Trace::Open("traces/digits_mlp");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Trace& trace = *opened;
  const TraceSchema& schema = trace.schema();
  EXPECT_EQ(schema.world_size, 4);
  EXPECT_EQ(schema.steps, 96);
  EXPECT_EQ(schema.parameters(), 64 * 32 + 32 + 32 * 10 + 10);
  ASSERT_TRUE(schema.model && schema.model->graph);
  EXPECT_EQ(schema.model->parameters, schema.parameters());
  ASSERT_NE(trace.data(), nullptr);
  EXPECT_EQ(trace.data()->train.features, 64U);
  EXPECT_TRUE(trace.data()->eval && trace.data()->batches);
  EXPECT_EQ(trace.initial_weights().size(), 4U);
  EXPECT_EQ(trace.final_weights().size(), 4U);
  EXPECT_EQ(trace.timing().ready_us.size(), 96U * 4 * 4);
  for (std::int64_t step = 0; step < schema.steps; ++step) {
    for (std::int64_t rank = 0; rank < schema.world_size; ++rank) {
      const Result<StepGradients> gradients = trace.Gradients(step, rank);
      ASSERT_TRUE(gradients.ok()) << gradients.status().message();
      ASSERT_EQ(gradients->tensors()[0].numel, 64U * 32);
    }
  }
}

}  // namespace
}  // namespace slimgrad::sim
