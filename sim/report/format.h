// Numbers and text as a report's reader sees them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slimgrad::sim::report {

// Three significant digits in at most 9 characters for any double: "0", "1.23", "0.00123",
// "12.3k", "1.23e-9", "nan". k, M, G and T are powers of 1000.
std::string ThreeDigits(double value);

// Columns that UTF-8 `text` takes, one a code point.
std::size_t DisplayWidth(std::string_view text);

// `text` with control characters replaced by '?', so that it cannot move the cursor or break a
// table.
std::string OneLine(std::string_view text);

// Cuts the middle out of `text` to fit `width` (at least 8) columns: "error_fe...values)".
std::string Shorten(std::string_view text, std::size_t width);

// Breaks `text` at spaces into lines of at most `width` columns; a longer word stays whole.
std::string Wrap(std::string_view text, std::size_t width, std::string_view first,
                 std::string_view next);

// Rows of equal length as lines: columns as wide as their widest cell, two spaces apart, no spaces
// at the ends. Control characters are replaced as by OneLine.
std::string TextTable(std::vector<std::vector<std::string>> rows);

}  // namespace slimgrad::sim::report
