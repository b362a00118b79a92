// Replays a gradient trace through compressors: every step's gradients of all workers go through
// the real exchange, in real payload bytes, and the trace's optimizer applies the average to the
// weights.
//
// Two loops. Open: the recorded gradients, whatever became of the weights; it says what a
// compressor loses a step, and flatters error feedback at the end. Closed: the trace's model makes
// new gradients at the compressed weights, from the recorded initial weights and batch order; that
// is where accuracy comes from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compressors/api/compressor.h"
#include "core/status.h"
#include "kernels/backend.h"
#include "sim/report/report.h"
#include "sim/trace.h"

namespace slimgrad::sim {

// What is always measured, and first: dense fp32 and dense bf16.
inline constexpr std::string_view kBaselines[] = {"none", "bf16"};

// A compressor as the user asked for it.
struct ReplaySpec {
  std::string label;
  Compressor compressor;
};

// "A; B; C" as compressors, with the baselines in front and each canonical spec once.
// kInvalidArgument for a bad one.
Result<std::vector<ReplaySpec>> ParseReplaySpecs(std::string_view list);

struct ReplayOptions {
  std::optional<std::int64_t> steps = {};  // the trace's first ones: 1 to all of them; none: all
  std::uint64_t seed = 0;                  // of the compressors' randomness
  bool open_loop = true;
  bool closed_loop = true;           // where the trace's model can be run; see require_closed_loop
  bool require_closed_loop = false;  // kUnsupported instead of a note where it cannot
  Backend backend = {};

  // Both optional. The clock gives nanoseconds; without it there are no timings.
  std::function<std::uint64_t()> clock_ns = {};
  std::function<void(std::string_view label, std::int64_t done, std::int64_t total)> progress = {};
};

struct ReplayResult {
  Report report;
  Timings timings;
};

// Errors of the trace or the options are the result's; what goes wrong with one spec is in its row,
// and the others go on. The report depends on trace, specs, steps and seed alone.
Result<ReplayResult> Replay(const Trace& trace, const std::vector<ReplaySpec>& specs,
                            const ReplayOptions& options);

}  // namespace slimgrad::sim
