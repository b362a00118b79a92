// Sizes of the types that cross from the C++ compiler's code into nvcc's, as the including file's
// compiler sees them.
#pragma once

#include <array>
#include <cstddef>

#include "core/random.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad {

// In a namespace of its own in each file, or the linker would keep one compiler's answer for both.
namespace {

constexpr std::array<std::size_t, 12> LayoutHere() {
  return {sizeof(TensorSpec), alignof(TensorSpec), sizeof(ConstView), alignof(ConstView),
          sizeof(View),       alignof(View),       sizeof(In),        alignof(In),
          sizeof(Backend),    alignof(Backend),    sizeof(RandomKey), alignof(RandomKey)};
}

}  // namespace

}  // namespace slimgrad
