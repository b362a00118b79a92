// One compressor through one loop of a replay.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/traffic.h"
#include "compressors/api/compressor.h"
#include "core/status.h"
#include "sim/error_meter.h"
#include "sim/gradient_source.h"
#include "sim/replay.h"

namespace slimgrad::sim {

// All that a loop over the steps finds out.
struct RunResult {
  explicit RunResult(const Trace& trace, const Backend& backend)
      : traffic(static_cast<int>(trace.schema().world_size)), errors(backend, trace.tensors()) {}

  std::vector<Plan> plans;
  Traffic traffic;                  // sums over the steps that were not skipped, all ranks
  std::uint64_t payload_bytes = 0;  // likewise
  std::int64_t steps = 0;           // not skipped
  std::int64_t skipped = 0;
  std::uint64_t saturated = 0;
  ErrorMeter errors;
  std::vector<double> residual_norms;  // a step, mean over ranks; empty: no rank keeps a residual
  std::vector<double> train_losses;
  std::string failure;               // empty, or "diverged at step N"
  std::optional<TensorSet> weights;  // after the last step; none: the trace has no initial ones
  std::uint64_t encode_ns = 0, decode_ns = 0, wall_ns = 0;
};

// `steps` steps of `source` through `compressor`. `tick` is called after each.
Result<RunResult> RunLoop(const Trace& trace, const Compressor& compressor, GradientSource& source,
                          std::int64_t steps, const ReplayOptions& options,
                          const std::function<void()>& tick);

}  // namespace slimgrad::sim
