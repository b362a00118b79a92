// Replays of made-up traces, for the tests of sim/replay.h.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/replay.h"
#include "tests/sim/gradient_trace.h"
#include "tests/sim/synthetic_trace.h"

namespace slimgrad::sim {

// The row that was asked for as `label`; a failed test and an empty row when there is none.
inline const Row& RowOf(const Report& report, std::string_view label) {
  static const Row kNone;
  const auto row = std::find_if(report.rows.begin(), report.rows.end(),
                                [&](const Row& r) { return r.label == label; });
  if (row != report.rows.end()) return *row;
  ADD_FAILURE() << "no row for " << label;
  return kNone;
}

class ReplayFixture : public TraceFolder {
 protected:
  // Of the trace in folder_.
  Result<ReplayResult> TryReplay(std::string_view specs, const ReplayOptions& options = {}) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const Trace trace, Trace::Open(folder_));
    SLIMGRAD_ASSIGN_OR_RETURN(const auto parsed, ParseReplaySpecs(specs));
    return Replay(trace, parsed, options);
  }
  Report Replayed(std::string_view specs, const ReplayOptions& options = {}) const {
    Result<ReplayResult> result = TryReplay(specs, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(result->report) : Report();
  }
  // The same for a trace that is written first.
  template <class Made>
  Report ReplayedFrom(const Made& made, std::string_view specs, const ReplayOptions& options = {}) {
    std::filesystem::remove_all(folder_);
    const Status status = made.WriteTo(folder_);
    EXPECT_TRUE(status.ok()) << status.message();
    return Replayed(specs, options);
  }
};

}  // namespace slimgrad::sim
