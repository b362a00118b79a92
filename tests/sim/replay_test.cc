#include "sim/replay.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/replay_fixture.h"

namespace slimgrad::sim {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- Lists of specs.

std::vector<std::string> Labels(std::string_view list) {
  const auto specs = ParseReplaySpecs(list);
  EXPECT_TRUE(specs.ok()) << specs.status().message();
  std::vector<std::string> labels;
  for (const ReplaySpec& spec : *specs) labels.push_back(spec.label);
  return labels;
}

TEST(ParseReplaySpecs, BaselinesFirstAndEachOnce) {
  EXPECT_THAT(Labels(""), ElementsAre("none", "bf16"));
  EXPECT_THAT(Labels(" ; one_bit;;\n fp16 ; "), ElementsAre("none", "bf16", "one_bit", "fp16"));
  EXPECT_THAT(Labels("bf16; fp16; none; top_k; top_k( ratio = 0.010 ); top_k()"),
              ElementsAre("none", "bf16", "fp16", "top_k"));
}

TEST(ParseReplaySpecs, ABadOneIsNamed) {
  const Status status = ParseReplaySpecs("one_bit; topk").status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("topk"));
}

class ReplayTest : public ReplayFixture {
 protected:
  SyntheticTrace made_;
};

constexpr char kTopK[] = "top_k(k=1)", kFeedback[] = "error_feedback(top_k(k=1))";

TEST_F(ReplayTest, ImpossibleStepsAreRefused) {
  ASSERT_TRUE(made_.WriteTo(folder_).ok());
  for (const std::int64_t steps : {0, -1, 4}) {
    ReplayOptions options;
    options.steps = steps;
    const Status status = TryReplay("", options).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "steps: expected 1 to 3, which the trace has, found " + std::to_string(steps));
  }
}

// ---- Which loops run.

TEST_F(ReplayTest, LoopsAsAskedFor) {
  ReplayOptions open, closed;
  open.closed_loop = false;
  closed.open_loop = false;
  const Report both = ReplayedFrom(made_, kTopK), first = Replayed(kTopK, open),
               second = Replayed(kTopK, closed);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_TRUE(both.rows[row].open_loop && both.rows[row].closed_loop);
    EXPECT_TRUE(first.rows[row].open_loop && !first.rows[row].closed_loop);
    EXPECT_TRUE(!second.rows[row].open_loop && second.rows[row].closed_loop);
    EXPECT_EQ(first.rows[row].open_loop->eval_loss, both.rows[row].open_loop->eval_loss);
    EXPECT_EQ(second.rows[row].closed_loop->eval_loss, both.rows[row].closed_loop->eval_loss);
    EXPECT_EQ(first.rows[row].nmse_steps, both.rows[row].nmse_steps);
  }
  EXPECT_NE(second.rows[2].nmse_steps, both.rows[2].nmse_steps);
  EXPECT_EQ(both.measured_in, Loop::kOpen);
  EXPECT_EQ(second.measured_in, Loop::kClosed);
  ReplayOptions neither = open;
  neither.open_loop = false;
  EXPECT_EQ(TryReplay(kTopK, neither).status().code(), Code::kInvalidArgument);
}

TEST_F(ReplayTest, GradientsAloneGiveBytesAndErrorsButNoAccuracy) {
  const Report report = ReplayedFrom(GradientTrace(), kFeedback);
  EXPECT_THAT(report.notes,
              AllOf(Contains("No closed loop: the trace has no model that can be run here."),
                    Contains("No accuracy: the trace has no model that can be run here.")));
  EXPECT_FALSE(report.HasFailures());
  for (const Row& row : report.rows) {
    EXPECT_FALSE(row.open_loop || row.closed_loop) << row.label;
    EXPECT_TRUE(row.payload_bits && row.nmse && row.cosine) << row.label;
  }
  ReplayOptions options;
  options.require_closed_loop = true;
  const Status status = TryReplay("", options).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "closed loop: the trace has no model that can be run here");
}

TEST_F(ReplayTest, WeightsWithoutAModelGiveADistance) {
  GradientTrace made;
  made.initial_weights = {std::vector<float>(48, 1), std::vector<float>(5, -1)};
  const Report report = ReplayedFrom(made, kTopK);
  for (const Row& row : report.rows) {
    ASSERT_TRUE(row.open_loop) << row.label;
    EXPECT_FALSE(row.open_loop->eval_loss || row.open_loop->eval_accuracy);
    EXPECT_FALSE(row.closed_loop);
  }
  EXPECT_EQ(report.rows[0].open_loop->weight_distance, 0);
  EXPECT_GT(*report.rows[2].open_loop->weight_distance, 0.01);
}

TEST_F(ReplayTest, AModelWithoutAnEvaluationSetTrainsUnevaluated) {
  auto writer = TraceWriter::Create(folder_, made_.schema).value();
  ASSERT_TRUE(made_.WriteSteps(writer).ok());
  ASSERT_TRUE(writer.InitialWeights(made_.weights()).ok());
  std::vector<SafetensorsEntry> data = made_.data();
  std::erase_if(data, [](const SafetensorsEntry& e) { return e.name.starts_with("eval_"); });
  ASSERT_TRUE(writer.Data({}, data).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const Report report = Replayed(kTopK);
  EXPECT_THAT(report.notes, ElementsAre("No accuracy: the trace has no evaluation set."));
  EXPECT_THAT(report.rows[2].closed_loop->train_loss, SizeIs(3));
  EXPECT_TRUE(report.rows[2].closed_loop->weight_distance);
  EXPECT_FALSE(report.rows[2].closed_loop->eval_accuracy);
}

// ---- Gradient types.

TEST_F(ReplayTest, SixteenBitTracesGiveTheSameReport) {
  GradientTrace made;
  const std::string specs = "top_k(k=3); error_feedback(one_bit); int8(rounding=stochastic)";
  const std::string wide = ToJson(ReplayedFrom(made, specs));
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    made.schema.gradient_dtype = dtype;
    EXPECT_EQ(ToJson(ReplayedFrom(made, specs)), wide);
    made.bad = {{2, 1}};
    EXPECT_EQ(ReplayedFrom(made, specs).rows[3].skipped_steps, 1);
    made.bad.clear();
  }
}

// ---- Divergence.

TEST_F(ReplayTest, ADivergedSpecSaysWhenAndTheOthersGoOn) {
  auto writer = TraceWriter::Create(folder_, made_.schema).value();
  ASSERT_TRUE(made_.WriteSteps(writer).ok());
  ASSERT_TRUE(writer.InitialWeights(made_.weights()).ok());
  TraceDataSource source;
  source.input_scale = 1e6;  // gradients beyond fp16
  ASSERT_TRUE(writer.Data(source, made_.data()).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const Report report = Replayed("fp16(overflow=inf); fp16; top_k(k=1)");
  const Row& inf = RowOf(report, "fp16(overflow=inf)");
  EXPECT_THAT(inf.closed_loop->failure, HasSubstr("diverged at step 1"));
  EXPECT_FALSE(inf.closed_loop->eval_accuracy || inf.closed_loop->weight_distance);
  EXPECT_EQ(inf.open_loop->failure, "");
  EXPECT_TRUE(report.HasFailures());
  for (const std::string label : {"none", "bf16", "fp16", "top_k(k=1)"}) {
    const Row& row = RowOf(report, label);
    EXPECT_EQ(row.closed_loop->failure, "") << label;
    EXPECT_TRUE(row.closed_loop->eval_accuracy) << label;
  }
  EXPECT_EQ(RowOf(report, "fp16").saturated, 0);  // measured in the open loop, which is tame
  ReplayOptions closed;
  closed.open_loop = false;
  EXPECT_GT(RowOf(Replayed("fp16", closed), "fp16").saturated, 0);
}

TEST_F(ReplayTest, AHugeLearningRateDivergesInBothLoops) {
  GradientTrace made;
  made.schema.learning_rates = {0.5, 3e38, 0.5, 0.5};  // times more than 2: beyond fp32
  made.initial_weights = {std::vector<float>(48, 1), std::vector<float>(5, -1)};
  const Report open = ReplayedFrom(made, kTopK);
  made_.schema.learning_rates = {1e39, 0.1, 0.1};
  const Report both = ReplayedFrom(made_, kTopK);
  EXPECT_TRUE(open.HasFailures() && both.HasFailures());
  ASSERT_THAT(both.rows, SizeIs(3));
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(open.rows[row].open_loop->failure, "diverged at step 2");
    EXPECT_EQ(both.rows[row].open_loop->failure, "diverged at step 1");
    EXPECT_EQ(both.rows[row].closed_loop->failure, "diverged at step 1");
    // No distance to a baseline that has no end.
    EXPECT_FALSE(both.rows[row].open_loop->weight_distance);
  }
}

// ---- Seeds and reruns.

TEST_F(ReplayTest, TheSameSeedGivesTheSameReport) {
  const std::string specs =
      "int8(rounding=stochastic); power_sgd(rank=1); " + std::string(kFeedback);
  ReplayOptions options;
  options.seed = 7;
  const std::string first = ToJson(ReplayedFrom(made_, specs, options));
  EXPECT_EQ(ToJson(Replayed(specs, options)), first);
  // Nor does it matter what ran before.
  const Report reordered =
      Replayed(std::string(kFeedback) + "; int8(rounding=stochastic)", options);
  const Report again = Replayed(specs, options);
  EXPECT_EQ(reordered.rows[3].nmse_steps, again.rows[2].nmse_steps);
  EXPECT_EQ(reordered.rows[2].closed_loop->eval_loss, again.rows[4].closed_loop->eval_loss);
}

TEST_F(ReplayTest, SeedsMatterToStochasticMethodsAlone) {
  const std::string specs = "int8(rounding=stochastic); int8; one_bit; " + std::string(kFeedback);
  ReplayOptions one, two;
  one.seed = 1;
  two.seed = 2;
  const Report first = ReplayedFrom(made_, specs, one), second = Replayed(specs, two);
  EXPECT_NE(first.rows[2].nmse_steps, second.rows[2].nmse_steps);
  for (const std::size_t row : {0, 1, 3, 4, 5}) {
    EXPECT_EQ(first.rows[row].nmse_steps, second.rows[row].nmse_steps) << first.rows[row].label;
    EXPECT_EQ(first.rows[row].closed_loop->train_loss, second.rows[row].closed_loop->train_loss);
  }
  EXPECT_THAT(second.provenance, Contains(std::pair<std::string, std::string>("seed", "2")));
}

// ---- Progress and times.

TEST_F(ReplayTest, ProgressCountsEveryStepOfEveryLoop) {
  ASSERT_TRUE(made_.WriteTo(folder_).ok());
  std::vector<std::string> labels;
  std::vector<std::int64_t> done, totals;
  ReplayOptions options;
  options.progress = [&](std::string_view label, std::int64_t d, std::int64_t total) {
    labels.emplace_back(label);
    done.push_back(d);
    totals.push_back(total);
  };
  Replayed(kTopK, options);
  ASSERT_THAT(done, SizeIs(3 * 2 * 3));
  for (std::size_t i = 0; i < done.size(); ++i)
    EXPECT_EQ(done[i], static_cast<std::int64_t>(i + 1));
  EXPECT_THAT(totals, Each(18));
  EXPECT_EQ(labels.front(), "none");
  EXPECT_EQ(labels.back(), kTopK);
}

TEST_F(ReplayTest, TimesComeFromTheClockThatIsPassedIn) {
  ASSERT_TRUE(made_.WriteTo(folder_).ok());
  EXPECT_THAT(TryReplay(kTopK)->timings.rows, IsEmpty());
  std::uint64_t ticks = 0;
  ReplayOptions options;
  options.clock_ns = [&] { return ticks += 1000; };
  const auto result = TryReplay(kTopK, options);
  ASSERT_THAT(result->timings.rows, SizeIs(3));
  for (std::size_t row = 0; row < 3; ++row) {
    const RowTiming& timing = result->timings.rows[row];
    EXPECT_EQ(timing.spec, result->report.rows[row].spec);
    // One tick a tensor, a step and a loop, at least: 2 x 3 x 2 of them. 8 parameters, 2 workers.
    EXPECT_GE(*timing.encode_seconds, 12e-6);
    EXPECT_NEAR(*timing.encode_gigabytes_per_second * *timing.encode_seconds * 1e9, 4 * 8 * 2 * 6,
                1e-6);
    EXPECT_NEAR(*timing.decode_gigabytes_per_second * *timing.decode_seconds * 1e9, 4 * 8 * 6,
                1e-6);
    EXPECT_GE(*timing.wall_seconds, *timing.encode_seconds + *timing.decode_seconds);
  }
  EXPECT_EQ(ToJson(result->report), ToJson(TryReplay(kTopK)->report));
}

}  // namespace
}  // namespace slimgrad::sim
