// Ascending indices as gaps in LEB128: 7 bits a byte, low bits first; the high bit: more follow.
//
// The first gap is indices[0], the others indices[j] - indices[j-1] - 1, so what decodes always
// ascends strictly.
#pragma once

#include <cstdint>
#include <span>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// Bytes that DeltaEncode may need for n indices: a 32-bit gap takes up to 5.
constexpr std::size_t DeltaBound(std::size_t n) { return 5 * n; }

// Writes the code of strictly ascending indices (CHECKed) and returns its length; code.size() >=
// DeltaBound (CHECKed).
std::size_t DeltaEncode(const Backend& backend, std::span<const std::uint32_t> indices,
                        std::span<std::uint8_t> code);

// Reads exactly indices.size() indices. kCorrupt, with the indices unspecified, unless they fit in
// 32 bits, each gap is coded in its shortest form and every byte of the code is used. So every
// accepted code is the one that DeltaEncode writes. The caller compares the last index with what it
// indexes (ScatterAdd does).
Status DeltaDecode(const Backend& backend, std::span<const std::uint8_t> code,
                   std::span<std::uint32_t> indices);

SLIMGRAD_KERNEL(DeltaEncode);
SLIMGRAD_KERNEL(DeltaDecode);

}  // namespace slimgrad::kernels
