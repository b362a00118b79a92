// Bytes and ratios of a replay, counted by hand. Three workers; a matrix of 8 x 6 and a vector of
// 5: 53 parameters.
//
// A combined round of n values moves 2 (W - 1) n values over all W workers, without headers. A
// gathered one moves a worker's frame to W - 1 others: 48 bytes of header, and for each section 16
// bytes and its data filled up to a multiple of 16. Agreeing that all is finite: 16 bytes to each
// other worker.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/replay_fixture.h"

namespace slimgrad::sim {
namespace {

using ::testing::ElementsAre;

constexpr double kCheck = 2 * 16;

class AccountingTest : public ReplayFixture {
 protected:
  void SetUp() override {
    report_ = ReplayedFrom(
        GradientTrace(),
        "top_k(k=3); one_bit(block=16); power_sgd(rank=1); error_feedback(power_sgd(rank=1)); "
        "int8(block=32); small_tensors(top_k(k=3), below=10)");
  }
  Report report_;
};

void ExpectBytes(const Row& row, double payload_bytes, double moved) {
  ASSERT_TRUE(row.payload_bits && row.sent_bytes && row.received_bytes) << row.label;
  EXPECT_DOUBLE_EQ(*row.payload_bits, payload_bytes * 8 / 53) << row.label;
  EXPECT_DOUBLE_EQ(*row.sent_bytes, moved + kCheck) << row.label;
  EXPECT_DOUBLE_EQ(*row.received_bytes, moved + kCheck) << row.label;
}

TEST_F(AccountingTest, Whole) {
  EXPECT_EQ(report_.world_size, 3);
  EXPECT_EQ(report_.parameters, 53);
  EXPECT_EQ(report_.measured_in, Loop::kOpen);
  EXPECT_FALSE(report_.HasFailures());
  ASSERT_EQ(report_.rows.size(), 8U);
  EXPECT_EQ(report_.rows[0].label, "none");
  EXPECT_EQ(report_.rows[1].label, "bf16");
}

TEST_F(AccountingTest, Dense) {
  const Row& none = RowOf(report_, "none");
  ExpectBytes(none, 53 * 4, 4.0 / 3 * 53 * 4);
  EXPECT_THAT(none.algorithms, ElementsAre("reduce_scatter_all_gather"));
  EXPECT_EQ(none.dense_fraction, 0);
  const Row& bf16 = RowOf(report_, "bf16");
  ExpectBytes(bf16, 53 * 2, 4.0 / 3 * 53 * 2);
  EXPECT_EQ(bf16.saturated, 0);
}

TEST_F(AccountingTest, TopK) {
  // Three indices of 4 bytes and three values of 4 bytes, 12 each, so 16 + 16 a section.
  const Row& row = RowOf(report_, "top_k(k=3)");
  ExpectBytes(row, 2 * (48 + 32 + 32), 2 * 2 * (48 + 32 + 32));
  EXPECT_THAT(row.algorithms, ElementsAre("all_gather"));
}

TEST_F(AccountingTest, OneBit) {
  // 48 bits in 6 bytes and three levels of 4 bytes, twice; 5 bits in one byte and one level, twice.
  ExpectBytes(RowOf(report_, "one_bit(block=16)"), 2 * (48 + 3 * 32), 2 * 2 * (48 + 3 * 32));
}

TEST_F(AccountingTest, Int8) {
  // 48 codes in 48 bytes and two scales; 5 codes and one scale.
  const double frames = 48 + (16 + 48) + 32 + 48 + 32 + 32;
  ExpectBytes(RowOf(report_, "int8(block=32)"), frames, 2 * frames);
}

TEST_F(AccountingTest, PowerSgdHasTwoRoundsAndADenseVector) {
  for (const std::string label : {"power_sgd(rank=1)", "error_feedback(power_sgd(rank=1))"}) {
    const Row& row = RowOf(report_, label);
    const double values = 8 + 6 + 5;
    ExpectBytes(row, values * 4, 4.0 / 3 * values * 4);
    EXPECT_DOUBLE_EQ(row.dense_fraction, 5.0 / 53);
    EXPECT_EQ(row.dense_reason, "1 of 2 tensors: not a matrix");
  }
}

TEST_F(AccountingTest, SmallTensorsGoDenseAndSaySo) {
  const Row& row = RowOf(report_, "small_tensors(top_k(k=3), below=10)");
  const double frame = 48 + 32 + 32;
  ExpectBytes(row, frame + 5 * 4, 2 * frame + 4.0 / 3 * 5 * 4);
  EXPECT_THAT(row.algorithms, ElementsAre("all_gather", "reduce_scatter_all_gather"));
  EXPECT_DOUBLE_EQ(row.dense_fraction, 5.0 / 53);
  EXPECT_NE(row.dense_reason.find("1 of 2 tensors: "), std::string::npos) << row.dense_reason;
}

// Ratios are columns of the files; there they meet these numbers.
TEST_F(AccountingTest, RatiosInTheFiles) {
  const std::string json = ToJson(report_);
  const double sent = 2 * 2 * (48 + 32 + 32) + kCheck;
  const double ratio = 4.0 / 3 * 53 * 4 / sent;
  const std::size_t row = json.find("\"top_k(k=3)\"");
  ASSERT_NE(row, std::string::npos);
  const std::size_t field = json.find("\"traffic_ratio_32\": ", row);
  ASSERT_NE(field, std::string::npos);
  EXPECT_NEAR(std::stod(json.substr(field + 20)), ratio, 1e-12);
  const std::size_t half = json.find("\"traffic_ratio_16\": ", row);
  ASSERT_NE(half, std::string::npos);
  EXPECT_NEAR(std::stod(json.substr(half + 20)), ratio / 2, 1e-12);
}

TEST_F(AccountingTest, OneWorkerSendsNothing) {
  GradientTrace alone;
  alone.schema.world_size = 1;
  const Report report = ReplayedFrom(alone, "top_k(k=3); power_sgd(rank=1)");
  for (const Row& row : report.rows) {
    EXPECT_TRUE(row.payload_bits) << row.label;
    EXPECT_FALSE(row.sent_bytes) << row.label;
    EXPECT_FALSE(row.received_bytes) << row.label;
  }
  EXPECT_DOUBLE_EQ(*RowOf(report, "none").payload_bits, 32);
  EXPECT_DOUBLE_EQ(*RowOf(report, "top_k(k=3)").payload_bits, 2 * 112 * 8.0 / 53);
}

TEST_F(AccountingTest, SkippedStepsCountForNothing) {
  GradientTrace made;
  made.bad = {{1, 2}, {3, 0}};
  const Report report = ReplayedFrom(made, "top_k(k=3); power_sgd(rank=1)");
  for (const Row& row : report.rows) EXPECT_EQ(row.skipped_steps, 2) << row.label;
  for (const Row& row : report_.rows) EXPECT_EQ(row.skipped_steps, 0) << row.label;
  ExpectBytes(RowOf(report, "top_k(k=3)"), 2 * 112, 4 * 112);
  ExpectBytes(RowOf(report, "power_sgd(rank=1)"), 19 * 4, 4.0 / 3 * 19 * 4);
}

TEST_F(AccountingTest, NothingButSkippedSteps) {
  GradientTrace made;
  made.bad = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  const Report report = ReplayedFrom(made, "top_k(k=3)");
  EXPECT_FALSE(report.HasFailures());
  for (const Row& row : report.rows) {
    EXPECT_EQ(row.skipped_steps, 4) << row.label;
    EXPECT_FALSE(row.payload_bits || row.sent_bytes || row.nmse) << row.label;
  }
}

}  // namespace
}  // namespace slimgrad::sim
