#include <map>
#include <string>

#include "core/atomic_file.h"
#include "sim/report/report.h"

namespace slimgrad::sim {

Status WriteReport(const std::string& folder, const Report& report, const Timings* timings) {
  std::map<std::string, std::string> files = {
      {"report.json", ToJson(report)},
      {"report.csv", ToCsv(report)},
      {"report.html", ToHtml(report, timings)},
  };
  if (timings != nullptr) files.emplace("timings.json", TimingsToJson(*timings));
  return WriteFilesAtomically(folder, files).In("report");
}

}  // namespace slimgrad::sim
