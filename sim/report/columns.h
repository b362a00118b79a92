// The columns of a report, as data: one entry here and the terminal table, JSON, CSV and HTML
// all have it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/report/report.h"

namespace slimgrad::sim::report {

enum class Section : std::uint8_t { kName, kSent, kError, kClosed, kOpen, kSpeed };

// How a value is shown to people; files always hold the plain value in the column's unit.
enum class Show : std::uint8_t { kText, kNumber, kPercent, kCount };

// Which end of the column is the good one, for a Pareto front and for a reader.
enum class Better : std::uint8_t { kNeither, kLess, kMore };

// monostate: no such value here, "n/a".
using Cell = std::variant<std::monostate, double, std::int64_t, std::string>;

struct Source {
  const Report& report;
  const Row& row;
  const RowTiming* timing;  // may be null
};

// The terminal's tables. Ratios of traffic need a second rank; with one rank, payload's stand in.
enum class Table : std::uint8_t { kNone, kBytes, kBytesIfOneRank, kBytesIfMoreRanks, kError, kEnd };

struct Column {
  std::string_view name;  // in the files: "traffic_ratio_32"
  std::string_view unit;  // in the files; empty for text
  Section section;
  Show show;
  Better better;
  Table table;
  std::string_view heading[2];  // above the unit in the terminal; joined by a space in HTML
  std::string_view shown_unit;  // to people
  std::string_view meaning;     // in plain words, a sentence or two
  Cell (*get)(const Source&);
};

const std::vector<Column>& Columns();

// Both heading lines in one, where there is room: "closed-loop accuracy".
std::string FullHeading(const Column& column);

// Whether the column is part of a terminal table of this report; `table` is kBytes, kError or kEnd.
bool In(Table table, const Column& column, const Report& report);

// "Bytes", "Gradient error", ... for people.
std::string_view Title(Section section);

// A cell as people see it: three significant digits, "n/a", or "failed" where a failure is why
// there is no value.
std::string Shown(const Column& column, const Source& source);

const RowTiming* FindTiming(const Timings* timings, const Row& row);

}  // namespace slimgrad::sim::report
