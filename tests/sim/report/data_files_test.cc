// The files for programs: report.json, report.csv, timings.json.
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/report/report.h"
#include "tests/sim/report/sample_report.h"

namespace slimgrad::sim {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The fields of every record, by RFC 4180: written apart from the writer.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> records(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = records.back().back();
    if (quoted) {
      if (text[i] != '"') {
        field += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      records.back().emplace_back();
    } else if (text.compare(i, 2, "\r\n") == 0) {
      records.push_back({""});
      ++i;
    } else {
      field += text[i];
    }
  }
  EXPECT_EQ(records.back(), std::vector<std::string>{""}) << "must end in CRLF";
  records.pop_back();
  return records;
}

Report TwoRows() {
  Report report = SampleReport();
  report.rows = {report.rows[0], report.rows[1]};
  return report;
}

// ---- Accounting

json RowOf(const Report& report, std::size_t row) {
  return json::parse(ToJson(report))["rows"][row];
}

TEST(Ratios, AreDenseRingBytesOverSent) {
  Report report;
  report.world_size = 4;
  report.parameters = 1000;
  Row row;
  row.payload_bits = 8;
  row.sent_bytes = 1500;
  report.rows = {row};
  const json found = RowOf(report, 0);
  // 2 (4 - 1) / 4 * 1000 values, of 4 and of 2 bytes.
  EXPECT_EQ(found["traffic_ratio_32"], 6000.0 / 1500);
  EXPECT_EQ(found["traffic_ratio_16"], 3000.0 / 1500);
  EXPECT_EQ(found["payload_ratio_32"], 4.0);
  EXPECT_EQ(found["payload_ratio_16"], 2.0);
}

TEST(Ratios, OneRankHasPayloadColumnsAlone) {
  const json found = RowOf(OneRankReport(), 7);
  EXPECT_TRUE(found["sent_bytes"].is_null());
  EXPECT_TRUE(found["received_bytes"].is_null());
  EXPECT_TRUE(found["traffic_ratio_32"].is_null());
  EXPECT_TRUE(found["traffic_ratio_16"].is_null());
  EXPECT_DOUBLE_EQ(found["payload_ratio_32"], 32 / 0.95);
}

TEST(Ratios, NothingSentIsNoRatio) {
  Report report = TwoRows();
  report.rows[0].sent_bytes = 0;
  report.rows[0].payload_bits = 0;
  const json found = RowOf(report, 0);
  EXPECT_TRUE(found["traffic_ratio_32"].is_null());
  EXPECT_TRUE(found["payload_ratio_32"].is_null());
}

// ---- JSON

TEST(Json, HoldsTheNumbersToTheLastBit) {
  Report report = SampleReport();
  report.rows[0].payload_bits = 0.1 + 0.2;
  report.rows[1].sent_bytes = 5e-324;
  report.rows[1].received_bytes = 1.7976931348623157e308;
  const json found = json::parse(ToJson(report));
  EXPECT_EQ(found["format"], "slimgrad-report");
  EXPECT_EQ(found["version"], 1);
  EXPECT_EQ(found["world_size"], 4);
  EXPECT_EQ(found["measured_in"], "open_loop");
  EXPECT_EQ(found["provenance"]["seed"], "1");
  ASSERT_EQ(found["rows"].size(), report.rows.size());
  EXPECT_EQ(found["rows"][0]["payload_bits"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(found["rows"][1]["sent_bytes"].get<double>(), 5e-324);
  EXPECT_EQ(found["rows"][1]["received_bytes"].get<double>(), 1.7976931348623157e308);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const std::vector<double>& steps = report.rows[i].residual_norm_steps;
    ASSERT_EQ(found["rows"][i]["steps"]["residual_norm"].get<std::vector<double>>(), steps);
  }
  EXPECT_EQ(found["rows"][4]["tensors"][1]["name"], "fc1.bias");
  EXPECT_EQ(found["rows"][4]["tensors"][1]["nmse"].get<double>(),
            report.rows[4].tensor_nmse[1].value);
}

TEST(Json, EveryRowHasEveryColumn) {
  const json found = json::parse(ToJson(SampleReport()));
  for (const json& row : found["rows"]) {
    for (const json& column : found["columns"]) {
      EXPECT_TRUE(row.contains(column["name"].get<std::string>())) << column;
    }
  }
}

TEST(Json, NonFiniteNumbersAreNullAndNamed) {
  Report report = TwoRows();
  report.rows[0].closed_loop->eval_loss = kInfinity;
  report.rows[0].closed_loop->weight_distance = -kInfinity;
  report.rows[0].nmse_steps = {1, std::numeric_limits<double>::quiet_NaN()};
  report.rows[0].open_loop->eval_loss = std::numeric_limits<double>::quiet_NaN();
  const json found = RowOf(report, 0);
  EXPECT_TRUE(found["closed_eval_loss"].is_null());
  EXPECT_EQ(found["non_finite"], json({{"closed_eval_loss", "inf"},
                                       {"closed_weight_distance", "-inf"},
                                       {"open_eval_loss", "nan"}}));
  EXPECT_EQ(found["steps"]["nmse"], json({1.0, nullptr}));
  EXPECT_EQ(RowOf(report, 1)["non_finite"], json::object());
}

TEST(Json, FailedRowsSayWhy) {
  const json diverged = RowOf(SampleReport(), 16);
  EXPECT_EQ(diverged["status"], "ended early");
  EXPECT_EQ(diverged["failure"], "closed loop: diverged at step 37: training loss is inf");
  EXPECT_TRUE(diverged["closed_eval_accuracy"].is_null());
  EXPECT_FALSE(diverged["open_eval_accuracy"].is_null());
  const json failed = RowOf(SampleReport(), 17);
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_TRUE(failed["payload_bits"].is_null());
  EXPECT_EQ(RowOf(SampleReport(), 0)["status"], "ok");
}

TEST(Json, TakesAnyBytesAsNames) {
  Report report = TwoRows();
  report.rows[0].label = "not UTF-8: \xFF, quote \", newline \n";
  EXPECT_EQ(RowOf(report, 0)["label"], "not UTF-8: \uFFFD, quote \", newline \n");
}

TEST(Json, TimingsStandApart) {
  const json found = json::parse(TimingsToJson(SampleTimings()));
  EXPECT_EQ(found["format"], "slimgrad-timings");
  EXPECT_EQ(found["rows"][1]["spec"], "bf16");
  EXPECT_EQ(found["rows"][1]["encode_gigabytes_per_second"], 6.1);
  EXPECT_EQ(ToJson(SampleReport()).find("per_second"), std::string::npos);
  EXPECT_EQ(ToCsv(SampleReport()).find("per_second"), std::string::npos);
}

// ---- CSV

TEST(Csv, QuotesWhatNeedsIt) {
  Report report = TwoRows();
  report.rows[0].label = "comma, \"quotes\"\r\nand two lines";
  const auto records = ParseCsv(ToCsv(report));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0][0], "spec");
  EXPECT_EQ(records[1][1], report.rows[0].label);
  EXPECT_EQ(records[2][1], "bf16");
}

TEST(Csv, AgreesWithJson) {
  const Report report = SampleReport();
  const auto records = ParseCsv(ToCsv(report));
  const json found = json::parse(ToJson(report));
  ASSERT_EQ(records.size(), report.rows.size() + 1);
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    ASSERT_EQ(records[row + 1].size(), found["columns"].size());
    for (std::size_t i = 0; i < found["columns"].size(); ++i) {
      const json& column = found["columns"][i];
      const std::string name = column["name"], unit = column["unit"];
      EXPECT_EQ(records[0][i], unit.empty() ? name : name + " [" + unit + "]");
      const json& value = found["rows"][row][name];
      const std::string& field = records[row + 1][i];
      if (value.is_null()) {
        EXPECT_EQ(field, "") << name;
      } else if (value.is_string()) {
        EXPECT_EQ(field, value.get<std::string>()) << name;
      } else {
        EXPECT_EQ(std::strtod(field.c_str(), nullptr), value.get<double>()) << name;
      }
    }
  }
}

}  // namespace
}  // namespace slimgrad::sim
