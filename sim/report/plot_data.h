// What report.js reads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace slimgrad::sim::report {

// Every `Stride`-th step is drawn, so that the page stays small however long the run was.
std::size_t Stride(const Report& report);

// The tensors with the largest error in any row, at most `most`, in the report's order.
std::vector<std::string> WorstTensors(const Report& report, std::size_t most);

// One JSON object, ASCII, not yet escaped for HTML:
//   {"columns": [{"name", "heading", "unit", "better", "percent", "logarithmic"}],
//    "tensors": [name], "stride": S,
//    "rows": [{"name", "values": {column: number or null}, "nmse": [...], "residual": [...],
//              "train": [...], "tensors": [...]}]}
// Values over the steps are rounded to four digits: nobody sees more in a plot.
std::string PlotData(const Report& report, const Timings* timings,
                     const std::vector<std::string>& tensors);

}  // namespace slimgrad::sim::report
