// report.csv: RFC 4180, a header line of "name [unit]", one line a row. The values over steps and
// per tensor are in report.json alone.
#include <string>

#include <fmt/format.h>

#include "sim/report/columns.h"
#include "sim/report/report.h"

namespace slimgrad::sim {
namespace report {
namespace {

std::string Quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char byte : text) {
    if (byte == '"') out += '"';
    out += byte;
  }
  return out + "\"";
}

// Numbers as short as reading back the same double allows; nothing where there is no value.
std::string Plain(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return Quoted(*text);
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *count);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  return "";
}

std::string Heading(const Column& column) {
  if (column.unit.empty()) return std::string(column.name);
  return fmt::format("{} [{}]", column.name, column.unit);
}

}  // namespace
}  // namespace report

std::string ToCsv(const Report& report) {
  std::string out;
  const auto line = [&out](auto field) {
    const char* separator = "";
    for (const report::Column& column : report::Columns()) {
      if (column.section == report::Section::kSpeed) continue;  // differs from run to run
      out += separator + field(column);
      separator = ",";
    }
    out += "\r\n";
  };
  line([](const report::Column& column) { return report::Quoted(report::Heading(column)); });
  for (const Row& row : report.rows) {
    line([&](const report::Column& column) {
      return report::Plain(column.get({report, row, nullptr}));
    });
  }
  return out;
}

}  // namespace slimgrad::sim
