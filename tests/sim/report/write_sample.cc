// Renders the sample report: write_sample text [WIDTH] | json | csv | html, to stdout. For the
// browser test, and for looking at the renderings with one's own eyes.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/report/report.h"
#include "tests/sim/report/sample_report.h"

int main(int argc, char** argv) {
  using namespace slimgrad::sim;  // NOLINT: a tool of twenty lines
  const std::string what = argc > 1 ? argv[1] : "text";
  const Report report = SampleReport();
  const Timings timings = SampleTimings();
  std::string out;
  if (what == "json") {
    out = ToJson(report);
  } else if (what == "csv") {
    out = ToCsv(report);
  } else if (what == "html") {
    out = ToHtml(report, &timings);
  } else if (what == "text") {
    out = ToText(report, &timings, argc > 2 ? std::atoi(argv[2]) : 100);
  } else {
    std::fprintf(stderr, "write_sample: expected text, json, csv or html, found %s\n", argv[1]);
    return 2;
  }
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() ? 0 : 1;
}
