#include "sim/report/report.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/report/columns.h"
#include "sim/report/format.h"
#include "tests/sim/report/sample_report.h"

namespace slimgrad::sim {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

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

// ---- Columns

TEST(Columns, AreNamedOnceAndExplained) {
  std::set<std::string_view> names;
  for (const report::Column& column : report::Columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
    EXPECT_FALSE(column.meaning.empty()) << column.name;
    EXPECT_EQ(column.unit.empty(), column.show == report::Show::kText) << column.name;
  }
}

// ---- Terminal

TEST(Text, Golden) {
  const Timings timings = SampleTimings();
  const std::string found = ToText(SampleReport(), &timings, 100);
  const std::string expected = ReadFile("tests/sim/report/golden/report.txt");
  EXPECT_EQ(found, expected) << "If the change is meant: bazel run //tests/sim/report:write_sample "
                                "-- text > tests/sim/report/golden/report.txt";
}

TEST(Text, FitsTheWidth) {
  const Timings timings = SampleTimings();
  for (const int width : {100, 120, 200}) {
    for (const Report& report : {SampleReport(), OneRankReport()}) {
      for (const std::string& line : Lines(ToText(report, &timings, width))) {
        EXPECT_LE(report::DisplayWidth(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

// Where the columns of a table end, read from the rule between heading and rows.
std::vector<std::size_t> Ends(const std::string& rule) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    if (rule[i] == '-' && (i + 1 == rule.size() || rule[i + 1] == ' ')) ends.push_back(i);
  }
  return ends;
}

bool IsRule(const std::string& line) { return line.rfind("--", 0) == 0; }

TEST(Text, ColumnsNeverShift) {
  Report report = SampleReport();
  const double extremes[] = {
      1e-9,     1e-300, 123456, 1e300,     0,
      -1.5e-12, 999.96, 1e15,   kInfinity, std::numeric_limits<double>::quiet_NaN()};
  for (std::size_t i = 0; i < std::size(extremes); ++i) {
    Row& row = report.rows[i];
    row.payload_bits = row.sent_bytes = row.received_bytes = extremes[i];
    row.nmse = row.cosine = Spread{extremes[i], extremes[i], extremes[i], "w", extremes[i]};
    row.closed_loop->eval_loss = row.open_loop->weight_distance = extremes[i];
  }
  const std::vector<std::string> lines = Lines(ToText(report, nullptr, 100));
  int tables = 0;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (!IsRule(lines[at])) continue;
    ++tables;
    const std::vector<std::size_t> ends = Ends(lines[at]);
    for (std::size_t row = 1; row <= report.rows.size(); ++row) {
      const std::string& line = lines[at + row];
      ASSERT_EQ(line.size(), ends.back() + 1) << line;
      // Past number and name, a cell ends where its column does, and a gap follows.
      for (std::size_t column = 2; column < ends.size(); ++column) {
        EXPECT_NE(line[ends[column]], ' ') << line;
        if (column + 1 == ends.size()) break;
        EXPECT_EQ(line.substr(ends[column] + 1, 2), "  ") << line;
      }
    }
  }
  EXPECT_EQ(tables, 3);
}

TEST(Text, PlainAsciiWithoutControlCharacters) {
  Report report = SampleReport();
  report.rows[3].label = "evil\033[2J\n\r\tname";
  report.provenance.emplace_back("trace\n", "two\nlines");
  report.notes.emplace_back("\033]0;title\a");
  for (const char byte : ToText(report, nullptr, 100)) {
    EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte < 0x7F)) << static_cast<int>(byte);
  }
}

TEST(Text, ShortenedNamesAreGivenInFull) {
  Report report = TwoRows();
  report.rows[1].label = report.rows[1].spec = std::string(80, 'x') + "end";
  const std::string text = ToText(report, nullptr, 100);
  EXPECT_NE(text.find("\n 2  " + report.rows[1].spec + "\n"), std::string::npos) << text;
}

TEST(Text, MissingTimesAreNotAvailable) {
  const std::string text = ToText(TwoRows(), nullptr, 100);
  EXPECT_NE(text.find("n/a     n/a\n"), std::string::npos) << text;
}

TEST(Text, FailuresAreSaid) {
  const std::string text = ToText(SampleReport(), nullptr, 100);
  EXPECT_NE(text.find("row 18: failed: tensor 'fc1.bias'"), std::string::npos);
  EXPECT_NE(text.find("row 17: closed loop: diverged at step 37"), std::string::npos);
  EXPECT_NE(text.find("row 3: 12 values saturated"), std::string::npos);
  EXPECT_NE(text.find("row 11: 1 step skipped"), std::string::npos);
  EXPECT_NE(text.find("row 16: 1.74 % of the parameters went uncompressed"), std::string::npos);
}

TEST(Text, EmptyReportAndNarrowTerminal) {
  EXPECT_NE(ToText(Report(), nullptr, 100).find("WHAT IS SENT"), std::string::npos);
  EXPECT_NE(ToText(SampleReport(), nullptr, 0).find("WHAT IS LOST"), std::string::npos);
  EXPECT_NE(ToText(SampleReport(), nullptr, -5).find("WHAT IS LOST"), std::string::npos);
}

TEST(Text, HeadlineNamesTheSmallestWithinAPoint) {
  const std::string text = ToText(SampleReport(), nullptr, 400);
  EXPECT_NE(text.find("(96.7 %): error_feedback(top_k(ratio=0.01)|delta_index|fp16_values), with "
                      "95.8 %, 26.2x"),
            std::string::npos)
      << text;
  Report lossy = SampleReport();
  for (std::size_t i = 1; i < lossy.rows.size(); ++i) {
    if (lossy.rows[i].closed_loop) lossy.rows[i].closed_loop->eval_accuracy = 0.5;
  }
  EXPECT_NE(ToText(lossy, nullptr, 400).find("No compressor here"), std::string::npos);
  Report open = SampleReport();
  for (Row& row : open.rows) row.closed_loop.reset();
  EXPECT_EQ(ToText(open, nullptr, 400).find("Fewest bytes"), std::string::npos);
}

TEST(Report, HasFailures) {
  EXPECT_FALSE(TwoRows().HasFailures());
  EXPECT_TRUE(SampleReport().HasFailures());
  Report diverged = TwoRows();
  diverged.rows[1].open_loop->failure = "diverged at step 2";
  EXPECT_TRUE(diverged.HasFailures());
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

// ---- Files

TEST(Report, SameBytesTwice) {
  const Timings timings = SampleTimings();
  EXPECT_EQ(ToJson(SampleReport()), ToJson(SampleReport()));
  EXPECT_EQ(ToCsv(SampleReport()), ToCsv(SampleReport()));
  EXPECT_EQ(ToHtml(SampleReport(), &timings), ToHtml(SampleReport(), &timings));
}

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = testing::TempDir() + "/reportXXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~Files() override { std::filesystem::remove_all(root_); }

  std::set<std::string> Names(const std::string& folder) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  std::string root_;
};

TEST_F(Files, AllAppear) {
  const Timings timings = SampleTimings();
  const std::string folder = root_ + "/new/report";
  const Status status = WriteReport(folder, SampleReport(), &timings);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(Names(folder),
            (std::set<std::string>{"report.csv", "report.html", "report.json", "timings.json"}));
  EXPECT_EQ(ReadFile(folder + "/report.json"), ToJson(SampleReport()));
  EXPECT_EQ(ReadFile(folder + "/report.csv"), ToCsv(SampleReport()));
}

TEST_F(Files, ARefusedFolderStaysAsItWas) {
  std::ofstream(root_ + "/report") << "a file, not a folder";
  const Status status = WriteReport(root_ + "/report", SampleReport(), nullptr);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find(root_ + "/report"), std::string::npos) << status.message();
  EXPECT_EQ(Names(root_), std::set<std::string>{"report"});
}

}  // namespace
}  // namespace slimgrad::sim
