// Lines and small tables of `inspect`.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/format.h"

namespace slimgrad::sim {

// "momentum    0.9": labels share a column.
inline std::string Line(std::string_view label, std::string_view text) {
  constexpr std::size_t kWidth = 15;
  std::string line(label);
  line.resize(std::max(kWidth, line.size() + 2), ' ');
  return line + report::OneLine(text) + "\n";
}

// Rows of equal length, the first a heading; columns as wide as their widest cell, two spaces
// apart.
inline std::string Table(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = report::OneLine(row[i]);
      widths[i] = std::max(widths[i], report::DisplayWidth(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - report::DisplayWidth(row[i]) + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace slimgrad::sim
