// JSON from outside (RFC 8259), parsed by nlohmann/json with the rules that its defaults leave
// open: nesting is bounded, a repeated key is an error, a byte order mark and bytes after the value
// (NUL included) are refused.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/status.h"

namespace slimgrad {

// The value of `text`; kCorrupt with line and column, or with the offending key, when it breaks a
// rule. `max_depth` counts nested arrays and objects. Memory is linear in the text's length. Never
// throws; thread-safe.
Result<nlohmann::json> ParseStrictJson(std::string_view text, int max_depth = 16);

// What was found, short enough for an error message: `1.5`, `"sgdd"`, `null`, `an array of 3`, `an
// object`.
std::string Describe(const nlohmann::json& value);

// `text` between double quotes, cut at 64 bytes, every byte outside printable ASCII as \xNN: safe
// on a terminal.
std::string Quoted(std::string_view text);

}  // namespace slimgrad
