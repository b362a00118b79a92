// What nvcc makes of the contracts' headers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace slimgrad {

// LayoutHere() as nvcc's host compilation sees it, or nothing where there is no toolkit.
std::optional<std::array<std::size_t, 12>> LayoutUnderNvcc();

}  // namespace slimgrad
