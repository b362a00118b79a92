// A replay of the shipped trace against what was recorded with it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compressors/api/registry.h"
#include "sim/gradient_source.h"
#include "sim/replay.h"
#include "sim/replay_run.h"

namespace slimgrad::sim {
namespace {

using ::testing::SizeIs;

class ReplayTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto trace = Trace::Open("traces/digits_mlp");
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    trace_.emplace(std::move(trace).value());
  }

  void ExpectRecordedWeights(GradientSource& source) {
    const Compressor none = MakeCompressor("none").value();
    const auto run = RunLoop(*trace_, none, source, trace_->schema().steps, {}, [] {});
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->failure, "");
    ASSERT_TRUE(run->weights);
    double worst = 0;  // as docs/trace_format.md puts it: at most 1
    for (std::size_t t = 0; t < trace_->tensors().size(); ++t) {
      const In found = run->weights->ins()[t], recorded = trace_->final_weights()[t];
      for (std::size_t i = 0; i < found.size(); ++i)
        worst = std::max(worst, std::abs(found[i] - recorded[i]) /
                                    (1e-5 + 1e-5 * std::abs(static_cast<double>(recorded[i]))));
    }
    EXPECT_LE(worst, 1);
  }

  std::optional<Trace> trace_;
};

TEST_F(ReplayTraceTest, OpenLoopEndsAtTheRecordedWeights) {
  ExpectRecordedWeights(*RecordedGradients(*trace_, {}));
}

TEST_F(ReplayTraceTest, ClosedLoopEndsAtTheRecordedWeights) {
  auto source = ModelGradients(*trace_);
  ASSERT_TRUE(source.ok()) << source.status().message();
  ExpectRecordedWeights(**source);
}

TEST_F(ReplayTraceTest, BothLoopsReachTheRecordedAccuracy) {
  const auto specs = ParseReplaySpecs("error_feedback(top_k(ratio=0.05)); top_k(ratio=0.05)");
  ASSERT_TRUE(specs.ok()) << specs.status().message();
  const auto result = Replay(*trace_, *specs, {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Report& report = result->report;
  EXPECT_EQ(report.world_size, 4);
  EXPECT_EQ(report.parameters, 2410);
  const Row& none = report.rows[0];
  const TraceResults& recorded = trace_->schema().results;
  for (const auto& outcome : {none.open_loop, none.closed_loop}) {
    ASSERT_TRUE(outcome);
    EXPECT_NEAR(*outcome->eval_loss, *recorded.final_eval_loss, 1e-5);
    EXPECT_NEAR(*outcome->eval_accuracy, *recorded.final_eval_accuracy, 1e-7);
    EXPECT_EQ(outcome->weight_distance, 0);
  }
  EXPECT_THAT(none.open_loop->train_loss, SizeIs(0));
  ASSERT_THAT(none.closed_loop->train_loss, SizeIs(96));
  for (std::size_t step = 0; step < 96; ++step)
    EXPECT_NEAR(none.closed_loop->train_loss[step], recorded.train_loss[step], 1e-4) << step;
  EXPECT_EQ(none.nmse->mean, 0);
  EXPECT_DOUBLE_EQ(none.cosine->mean, 1);
  int checks = 0;
  for (const std::string& note : report.notes) checks += note.starts_with("Check: ");
  EXPECT_EQ(checks, 2);
}

// What error feedback is for, and why the closed loop is the honest one.
TEST_F(ReplayTraceTest, ErrorFeedbackHelpsTopK) {
  const auto specs = ParseReplaySpecs("error_feedback(top_k(ratio=0.02)); top_k(ratio=0.02)");
  const auto result = Replay(*trace_, *specs, {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Row &with = result->report.rows[2], &without = result->report.rows[3];
  EXPECT_LT(*with.open_loop->weight_distance, *without.open_loop->weight_distance / 2);
  EXPECT_LT(*with.closed_loop->eval_loss, *without.closed_loop->eval_loss);
  EXPECT_GT(*with.closed_loop->weight_distance, *with.open_loop->weight_distance);
}

}  // namespace
}  // namespace slimgrad::sim
