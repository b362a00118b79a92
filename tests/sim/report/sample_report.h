// A report such as a replay of the shipped trace fills, made up but plausible: 17 compressors, two
// of which go wrong, on a 64-32-10 MLP with 4 workers and 100 steps. The same at every call.
#pragma once

#include "sim/report/report.h"

namespace slimgrad::sim {

Report SampleReport();
Timings SampleTimings();

// The same run with one worker: payload columns alone.
Report OneRankReport();

}  // namespace slimgrad::sim
