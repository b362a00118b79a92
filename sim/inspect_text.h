// Lines of `inspect`.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "sim/report/format.h"

namespace slimgrad::sim {

// "momentum    0.9": labels share a column.
inline std::string Line(std::string_view label, std::string_view text) {
  constexpr std::size_t kWidth = 15;
  std::string line(label);
  line.resize(std::max(kWidth, line.size() + 2), ' ');
  return line + report::OneLine(text) + "\n";
}

}  // namespace slimgrad::sim
