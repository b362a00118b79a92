#include "sim/report/html.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/report/plot_data.h"
#include "sim/report/report.h"
#include "tests/sim/report/sample_report.h"

namespace slimgrad::sim {
namespace {

using nlohmann::json;

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Escape, EverythingThatHtmlReads) {
  EXPECT_EQ(report::Escape("<b a='1' c=\"2\">&amp;"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;");
}

TEST(EscapeJson, StaysTheSameJson) {
  const std::string text = "{\"a\": \"</script><!-- & \\u2028\"}";
  const std::string escaped = report::EscapeJson(text);
  EXPECT_EQ(escaped.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(json::parse(escaped), json::parse(text));
}

TEST(Fill, DoesNotLookIntoValues) {
  EXPECT_EQ(report::Fill("a{{x}}b{{y}}{{x}}", {{"x", "{{y}}"}, {"y", "2"}}), "a{{y}}b2{{y}}");
}

TEST(FillDeathTest, RefusesAPageThatAsksForMore) {
  EXPECT_DEATH(report::Fill("{{unknown}}", {}), "check failed");
}

// Names that would break out of wherever they are put.
Report Hostile() {
  Report report = SampleReport();
  const std::string evil =
      "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\u2028";
  for (Row& row : report.rows) {
    row.label = row.spec = evil;
    row.algorithms = {evil};
    row.dense_reason = evil;
    row.failure = evil;
    if (row.nmse) row.nmse->worst_tensor = evil;
    for (NamedValue& tensor : row.tensor_nmse) tensor.name += evil;
  }
  report.provenance = {{"trace", evil}, {evil, evil}};
  report.notes = {evil};
  return report;
}

TEST(Html, NamesCannotBreakOut) {
  Timings timings = SampleTimings();
  timings.machine = {{"CPU", "<script>"}};
  const std::string calm = ToHtml(SampleReport(), &timings);
  const std::string page = ToHtml(Hostile(), &timings);
  EXPECT_EQ(Count(page, "<script"), Count(calm, "<script"));
  EXPECT_EQ(Count(page, "</script"), Count(calm, "</script"));
  EXPECT_EQ(Count(page, "<img"), 0);
}

TEST(Html, NeedsNothingFromElsewhere) {
  const std::string page = ToHtml(SampleReport(), nullptr);
  EXPECT_EQ(Count(page, "src="), 0);
  EXPECT_EQ(Count(page, "@import"), 0);
  EXPECT_EQ(Count(page, "url("), 0);
  EXPECT_EQ(Count(page, "default-src 'none'"), 1);
  EXPECT_GT(Count(page, "Chart.js v3"), 0) << "the library's licence comment";
}

TEST(Html, TableIsThereWithoutJavaScript) {
  const Timings timings = SampleTimings();
  const std::string page = ToHtml(SampleReport(), &timings);
  EXPECT_EQ(Count(page, "<tr id=\"row-"), 18);
  EXPECT_EQ(Count(page, ">551</td>"), 2);          // what row 9 sends and receives
  EXPECT_EQ(Count(page, "is 26.2x its size"), 1);  // the headline
  EXPECT_NE(page.find("diverged at step 37"), std::string::npos);
  EXPECT_NE(page.find("2 of 18 compressors failed"), std::string::npos);
}

TEST(Html, SpeedOnlyWhereMeasured) {
  const Timings timings = SampleTimings();
  EXPECT_GT(Count(ToHtml(SampleReport(), &timings), "data-column=\"encode_gigabytes_per_second\""),
            0);
  EXPECT_EQ(Count(ToHtml(SampleReport(), nullptr), "data-column=\"encode_gigabytes_per_second\""),
            0);
}

TEST(Html, EmptyReport) {
  EXPECT_NE(ToHtml(Report(), nullptr).find("No errors by tensor"), std::string::npos);
}

TEST(PlotData, StaysSmallForLongRuns) {
  Report report = SampleReport();
  report.rows[1].nmse_steps.assign(100001, 0.123456789);
  EXPECT_EQ(report::Stride(report), 251u);
  const json found = json::parse(report::PlotData(report, nullptr, {}));
  EXPECT_EQ(found["stride"], 251);
  EXPECT_EQ(found["rows"][1]["nmse"].size(), 399u);
  EXPECT_EQ(found["rows"][1]["nmse"][0], 0.1235);
  EXPECT_EQ(report::Stride(SampleReport()), 1u);
}

TEST(PlotData, NonFiniteIsNull) {
  Report report = SampleReport();
  report.rows[1].nmse_steps = {1, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()};
  report.rows[1].payload_bits = std::numeric_limits<double>::infinity();
  const json row = json::parse(report::PlotData(report, nullptr, {"fc1.bias", "?"}))["rows"][1];
  EXPECT_EQ(row["nmse"], json({1.0, nullptr, nullptr}));
  EXPECT_TRUE(row["values"]["payload_bits"].is_null());
  EXPECT_FALSE(row["tensors"][0].is_null());
  EXPECT_TRUE(row["tensors"][1].is_null());
}

TEST(WorstTensors, AreChosenByErrorAndKeptInOrder) {
  Report report;
  report.rows.resize(2);
  report.rows[0].tensor_nmse = {{"a", 0.5}, {"b", 0.1}, {"c", 0.2}};
  report.rows[1].tensor_nmse = {{"a", 0.1}, {"b", 0.9}, {"d", 0.3}};
  EXPECT_EQ(report::WorstTensors(report, 2), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(report::WorstTensors(report, 3), (std::vector<std::string>{"a", "b", "d"}));
  EXPECT_EQ(report::WorstTensors(report, 9).size(), 4u);
}

}  // namespace
}  // namespace slimgrad::sim
