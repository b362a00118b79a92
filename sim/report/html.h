// Pieces of HTML.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace slimgrad::sim::report {

// Text for an element's content or a quoted attribute.
std::string Escape(std::string_view text);

// JSON made safe inside a <script> element: <, > and & become escapes. `json` must be ASCII.
std::string EscapeJson(std::string_view json);

// `page` with every {{name}} replaced, in one pass: values are not looked into. Every name in the
// page must have a value.
std::string Fill(std::string_view page, const std::map<std::string_view, std::string>& values);

}  // namespace slimgrad::sim::report
