// Exact top-k by magnitude, and the sparse additions that undo it.
#pragma once

#include <cstdint>
#include <span>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// The k = indices.size() = values.size() elements of largest |x|, k <= x.size() <= 2^32 (CHECKed);
// of equal magnitudes the lower index wins (+0 and -0 are equal). Indices ascend; values[j] =
// x[indices[j]], bit for bit. x is finite; else it is ordered by magnitude bits, so that a NaN
// ranks above infinity. The spans of one call do not overlap.
void TopK(const Backend& backend, In x, std::span<std::uint32_t> indices, Out values);

// y[indices[j]] = y[indices[j]] + weight * values[j]. Trusts nothing: kCorrupt, with y untouched,
// unless both spans are equally long and indices strictly ascend below y.size().
Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y);

namespace ref {
void TopK(const Backend& backend, In x, std::span<std::uint32_t> indices, Out values);
Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y);
}  // namespace ref

namespace cpu {
void TopK(const Backend& backend, In x, std::span<std::uint32_t> indices, Out values);
Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y);
}  // namespace cpu

}  // namespace slimgrad::kernels
