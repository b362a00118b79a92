#include "sim/report/format.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "core/check.h"

namespace slimgrad::sim::report {
namespace {

// UTF-8 bytes 10xxxxxx continue a code point.
bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Bytes of the first `count` code points of `text`.
std::size_t Prefix(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count) {
    ++at;
    while (at < text.size() && Continues(text[at])) ++at;
  }
  return at;
}

}  // namespace

std::string ThreeDigits(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  // Rounding first: 999.9 is 1.00e+3, so its exponent decides after the carry.
  const std::string rounded = fmt::format("{:.2e}", value);
  const std::size_t e = rounded.find('e');
  const int exponent = std::atoi(rounded.c_str() + e + 1);
  if (exponent >= -3 && exponent <= 2) return fmt::format("{:.{}f}", value, 2 - exponent);
  const std::string mantissa = rounded.substr(0, e);
  if (exponent < 3 || exponent > 14) return fmt::format("{}e{}", mantissa, exponent);
  return fmt::format("{:.{}f}{}",
                     std::strtod(mantissa.c_str(), nullptr) * std::pow(10, exponent % 3),
                     2 - exponent % 3, "?kMGT"[exponent / 3]);
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += Continues(byte) ? 0 : 1;
  return width;
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F: terminals know U+009B, for one, as the beginning of a control sequence.
    const bool upper_control = code == 0xC2 && next >= 0x80 && next < 0xA0;
    line += code < 0x20 || code == 0x7F || upper_control ? '?' : text[i];
    i += upper_control;
  }
  return line;
}

std::string Shorten(std::string_view text, std::size_t width) {
  SLIMGRAD_CHECK(width >= 8);
  const std::size_t length = DisplayWidth(text);
  if (length <= width) return std::string(text);
  const std::size_t tail = (width - 3) / 3;
  const std::size_t head = width - 3 - tail;
  return fmt::format("{}...{}", text.substr(0, Prefix(text, head)),
                     text.substr(Prefix(text, length - tail)));
}

std::string Wrap(std::string_view text, std::size_t width, std::string_view first,
                 std::string_view next) {
  std::string out(first);
  std::size_t column = DisplayWidth(first);
  bool line_is_empty = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : word.size());
    if (!line_is_empty && column + 1 + DisplayWidth(word) > width) {
      out += fmt::format("\n{}", next);
      column = DisplayWidth(next);
      line_is_empty = true;
    }
    out += fmt::format("{}{}", line_is_empty ? "" : " ", word);
    column += DisplayWidth(word) + (line_is_empty ? 0 : 1);
    line_is_empty = false;
  }
  return out + "\n";
}

std::string TextTable(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = OneLine(row[i]);
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace slimgrad::sim::report
