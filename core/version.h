// The library's version, as CHANGELOG.md counts it. Formats have versions of their own.
#pragma once

#include <string_view>

namespace slimgrad {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace slimgrad
