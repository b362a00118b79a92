// The terminal's rendering: three tables, one a question. Plain ASCII but for what names hold.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/report/columns.h"
#include "sim/report/format.h"
#include "sim/report/headline.h"
#include "sim/report/report.h"

namespace slimgrad::sim {
namespace report {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastCell = 6;   // narrower columns would sit closer than they read well
constexpr std::size_t kLeastName = 16;  // below it shortened names say nothing
constexpr std::size_t kMostName = 44;
constexpr std::size_t kLeastWidth = 60;

std::string Right(std::string_view text, std::size_t width) {
  const std::size_t used = DisplayWidth(text);
  return std::string(used < width ? width - used : 0, ' ') + std::string(text);
}

std::string Left(std::string_view text, std::size_t width) {
  const std::size_t used = DisplayWidth(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

// What a row is called in the tables. A baseline's or a user's own words before the canonical text.
std::string Name(const Row& row) { return OneLine(row.label.empty() ? row.spec : row.label); }

struct Cells {
  const Column* column;
  std::vector<std::string> rows;
  std::size_t width;
};

std::vector<Cells> Fill(const Report& report, const Timings* timings, Table table) {
  std::vector<Cells> all;
  for (const Column& column : Columns()) {
    if (!In(table, column, report)) continue;
    Cells cells{&column, {}, kLeastCell};
    for (const Row& row : report.rows) {
      cells.rows.push_back(Shown(column, {report, row, FindTiming(timings, row)}));
      cells.width = std::max(cells.width, DisplayWidth(cells.rows.back()));
    }
    for (const std::string_view head : {column.heading[0], column.heading[1], column.shown_unit}) {
      cells.width = std::max(cells.width, DisplayWidth(head));
    }
    all.push_back(std::move(cells));
  }
  return all;
}

std::size_t NumberWidth(const Report& report) {
  return std::max<std::size_t>(2, fmt::formatted_size("{}", report.rows.size()));
}

std::size_t LongestName(const Report& report) {
  std::size_t longest = kLeastName;
  for (const Row& row : report.rows) longest = std::max(longest, DisplayWidth(Name(row)));
  return std::min(longest, kMostName);
}

// One width for all tables, so that a row's numbers start at the same place in each.
std::size_t NameWidth(const Report& report, const std::vector<std::vector<Cells>>& tables,
                      std::size_t width) {
  std::size_t widest = 0;
  for (const std::vector<Cells>& table : tables) {
    std::size_t used = 0;
    for (const Cells& cells : table) used += kGap + cells.width;
    widest = std::max(widest, used);
  }
  const std::size_t others = NumberWidth(report) + kGap + widest;
  const std::size_t room = width > others + kLeastName ? width - others : kLeastName;
  return std::min(LongestName(report), room);
}

std::string Line(std::string_view number, std::string_view name, std::size_t number_width,
                 std::size_t name_width, const std::vector<std::string>& cells) {
  std::string line = Right(number, number_width) + std::string(kGap, ' ') + Left(name, name_width);
  for (const std::string& cell : cells) line += std::string(kGap, ' ') + cell;
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string Print(const Report& report, const std::vector<Cells>& table, std::string_view title,
                  std::size_t name_width) {
  const std::size_t number_width = NumberWidth(report);
  std::string out = fmt::format("\n{}\n\n", title);
  const auto heading = [&](std::string_view number, std::string_view name, auto text) {
    std::vector<std::string> cells;
    for (const Cells& column : table) cells.push_back(Right(text(*column.column), column.width));
    out += Line(number, name, number_width, name_width, cells);
  };
  heading("", "", [](const Column& column) { return column.heading[0]; });
  heading("#", "compressor", [](const Column& column) { return column.heading[1]; });
  heading("", "", [](const Column& column) { return column.shown_unit; });
  std::vector<std::string> rule;
  for (const Cells& column : table) rule.emplace_back(column.width, '-');
  out += Line(std::string(number_width, '-'), std::string(name_width, '-'), number_width,
              name_width, rule);
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    std::vector<std::string> cells;
    for (const Cells& column : table) cells.push_back(Right(column.rows[row], column.width));
    out += Line(fmt::format("{}", row + 1), Shorten(Name(report.rows[row]), name_width),
                number_width, name_width, cells);
  }
  return out;
}

std::string Provenance(const Report& report, std::size_t width) {
  std::string out;
  std::size_t longest = 0;
  for (const auto& [key, value] : report.provenance) longest = std::max(longest, DisplayWidth(key));
  for (const auto& [key, value] : report.provenance) {
    out += Wrap(OneLine(value), width, fmt::format("# {}  ", Left(OneLine(key), longest)),
                fmt::format("# {}  ", Left("", longest)));
  }
  return out;
}

// Rows whose name in the tables does not say everything: shortened, or defaults filled in.
std::string Legend(const Report& report, std::size_t name_width) {
  std::string out;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const Row& row = report.rows[i];
    if (row.spec == Shorten(Name(row), name_width)) continue;
    out += fmt::format("{}  {}\n", Right(fmt::format("{}", i + 1), NumberWidth(report)),
                       OneLine(row.spec));
  }
  return out.empty() ? out : "\nRows in full\n\n" + out;
}

std::string Notes(const Report& report, std::size_t width) {
  std::vector<std::string> notes = RowNotes(report);
  notes.insert(notes.begin(), report.notes.begin(), report.notes.end());
  std::string out;
  for (const std::string& note : notes) out += Wrap(OneLine(note), width, " * ", "   ");
  return out.empty() ? out : "\nNotes\n\n" + out;
}

}  // namespace
}  // namespace report

std::string ToText(const Report& report, const Timings* timings, int width) {
  using report::Table;
  const std::size_t columns =
      std::max(report::kLeastWidth, static_cast<std::size_t>(std::max(width, 0)));
  const std::vector<std::vector<report::Cells>> tables = {
      report::Fill(report, timings, Table::kBytes), report::Fill(report, timings, Table::kError),
      report::Fill(report, timings, Table::kEnd)};
  const std::size_t name_width = report::NameWidth(report, tables, columns);
  std::string out = report::Provenance(report, columns);
  out +=
      report::Print(report, tables[0],
                    "WHAT IS SENT a step by a worker, and what the model still learns", name_width);
  out += report::Print(report, tables[1],
                       fmt::format("WHAT IS LOST a step, of the averaged gradient ({} loop)",
                                   report.measured_in == Loop::kOpen ? "open" : "closed"),
                       name_width);
  out += report::Print(report, tables[2], "WHERE TRAINING ENDS, and how fast the compressor is",
                       name_width);
  out += report::Legend(report, name_width);
  out += report::Notes(report, columns);
  const std::string headline = report::Headline(report);
  if (!headline.empty()) out += "\n" + report::Wrap(headline, columns, "", "");
  return out;
}

}  // namespace slimgrad::sim
