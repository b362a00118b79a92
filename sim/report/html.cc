#include "sim/report/html.h"

#include "core/check.h"

namespace slimgrad::sim::report {

std::string Escape(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    switch (byte) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += byte;
    }
  }
  return out;
}

std::string EscapeJson(std::string_view json) {
  std::string out;
  for (const char byte : json) {
    SLIMGRAD_CHECK(static_cast<unsigned char>(byte) < 0x80);
    switch (byte) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += byte;
    }
  }
  return out;
}

std::string Fill(std::string_view page, const std::map<std::string_view, std::string>& values) {
  std::string out;
  for (;;) {
    const std::size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = page.find("}}", open);
    SLIMGRAD_CHECK(close != std::string_view::npos);
    const auto value = values.find(page.substr(open + 2, close - open - 2));
    SLIMGRAD_CHECK(value != values.end());
    out += value->second;
    page.remove_prefix(close + 2);
  }
}

}  // namespace slimgrad::sim::report
