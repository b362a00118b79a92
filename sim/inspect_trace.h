// The part of `inspect` that describes traces.
#pragma once

#include <string>

#include "core/status.h"
#include "sim/trace.h"

namespace slimgrad::sim {

// Reads every step file.
Result<std::string> DescribeTrace(const Trace& trace);

}  // namespace slimgrad::sim
