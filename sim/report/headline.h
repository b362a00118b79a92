// Sentences that a report adds of its own, made from its rows.
#pragma once

#include <string>
#include <vector>

#include "sim/report/report.h"

namespace slimgrad::sim::report {

// The answer in a sentence: which row sends least among those whose closed-loop accuracy is within
// one percentage point of the uncompressed row's. Empty if no closed loop was run.
std::string Headline(const Report& report);

// What the reader of a row must know: the collectives used, failures, tensors that went dense,
// saturated values, skipped steps.
std::vector<std::string> RowNotes(const Report& report);

}  // namespace slimgrad::sim::report
