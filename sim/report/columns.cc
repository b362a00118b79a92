#include "sim/report/columns.h"

#include <fmt/format.h>

#include "core/check.h"
#include "sim/report/format.h"

namespace slimgrad::sim::report {
namespace {

// Why a cell of this section has no value; empty if nothing failed.
std::string_view ReasonForNothing(Section section, const Row& row) {
  if (section == Section::kClosed && row.closed_loop && !row.closed_loop->failure.empty()) {
    return "failed";
  }
  if (section == Section::kOpen && row.open_loop && !row.open_loop->failure.empty()) {
    return "failed";
  }
  return row.failure.empty() ? "" : "failed";
}

}  // namespace

std::string FullHeading(const Column& column) {
  const bool in_a_loop = column.section == Section::kClosed || column.section == Section::kOpen;
  if (column.heading[1].empty()) return std::string(column.heading[0]);
  return fmt::format("{}{} {}", column.heading[0], in_a_loop ? "-loop" : "", column.heading[1]);
}

bool In(Table table, const Column& column, const Report& report) {
  if (column.table == table) return true;
  if (table != Table::kBytes) return false;
  return column.table ==
         (report.world_size > 1 ? Table::kBytesIfMoreRanks : Table::kBytesIfOneRank);
}

std::string_view Title(Section section) {
  switch (section) {
    case Section::kName: return "Names";
    case Section::kSent: return "Bytes";
    case Section::kError: return "Gradient error";
    case Section::kClosed: return "Closed loop";
    case Section::kOpen: return "Open loop";
    case Section::kSpeed: return "Speed";
  }
  SLIMGRAD_CHECK(false);
}

std::string Shown(const Column& column, const Source& source) {
  const Cell cell = column.get(source);
  if (const auto* text = std::get_if<std::string>(&cell)) return OneLine(*text);
  if (const auto* count = std::get_if<std::int64_t>(&cell)) {
    return *count < 100000 ? fmt::format("{}", *count) : ThreeDigits(static_cast<double>(*count));
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return ThreeDigits(column.show == Show::kPercent ? *number * 100 : *number);
  }
  const std::string_view reason = ReasonForNothing(column.section, source.row);
  return reason.empty() ? "n/a" : std::string(reason);
}

const RowTiming* FindTiming(const Timings* timings, const Row& row) {
  if (timings == nullptr) return nullptr;
  for (const RowTiming& timing : timings->rows) {
    if (timing.spec == row.spec) return &timing;
  }
  return nullptr;
}

}  // namespace slimgrad::sim::report
