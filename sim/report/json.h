// Pieces of JSON that the files and the HTML page share.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "sim/report/columns.h"

namespace slimgrad::sim::report {

using Json = nlohmann::ordered_json;

Json CellJson(const Cell& cell);
Json ColumnJson(const Column& column);
Json FactsJson(const Facts& facts);

// ASCII alone: a byte sequence that is not UTF-8 becomes U+FFFD. `indent` -1: one line.
std::string Dump(const Json& json, int indent);

}  // namespace slimgrad::sim::report
