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

#include "sim/report/columns.h"
#include "sim/report/format.h"
#include "tests/sim/report/sample_report.h"

namespace slimgrad::sim {
namespace {

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

Report TwoRows() {
  Report report = SampleReport();
  report.rows = {report.rows[0], report.rows[1]};
  return report;
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
  EXPECT_NE(text.find("row 3: 12 values overflowed"), std::string::npos);
  EXPECT_NE(text.find("row 11: 1 step skipped"), std::string::npos);
  EXPECT_NE(text.find("row 16: 1.74 % of the parameters went uncompressed"), std::string::npos);
}

TEST(Text, CollectivesAreNamed) {
  Report report = SampleReport();
  report.rows[15].algorithms = {"all_gather", "reduce_scatter_all_gather"};
  const std::string text = ToText(report, nullptr, 400);
  EXPECT_NE(text.find("Collectives: reduce_scatter_all_gather (rows 1-3, 15-17), all_gather (rows "
                      "4-14, 16)."),
            std::string::npos)
      << text;
  EXPECT_EQ(ToText(OneRankReport(), nullptr, 400).find("Collectives"), std::string::npos);
}

TEST(Text, EmptyReportAndNarrowTerminal) {
  EXPECT_NE(ToText(Report(), nullptr, 100).find("WHAT IS SENT"), std::string::npos);
  EXPECT_NE(ToText(SampleReport(), nullptr, 0).find("WHAT IS LOST"), std::string::npos);
  EXPECT_NE(ToText(SampleReport(), nullptr, -5).find("WHAT IS LOST"), std::string::npos);
}

TEST(Text, HeadlineNamesTheSmallestWithinAPoint) {
  const std::string text = ToText(SampleReport(), nullptr, 400);
  EXPECT_NE(text.find("(96.7 %): error_feedback(top_k(ratio=0.01)|delta_index|fp16_values), with "
                      "95.8 %. Dense 32-bit traffic is 26.2x its size"),
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
