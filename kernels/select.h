// Exact top-k by magnitude, selection by a threshold, and the sparse additions that undo them.
//
// Magnitudes order as the 31 bits below the sign do, so that a NaN ranks above infinity; +0 and -0
// are equal. Inputs are finite where nothing else is said; others are ordered all the same. The
// spans of one call do not overlap. Inputs have at most 2^32 elements (CHECKed).
#pragma once

#include <cstdint>
#include <span>

#include "core/scratch.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// The k = indices.size() = values.size() elements of largest |x|, k <= x.size() (CHECKed); of equal
// magnitudes the lower index wins. Indices ascend; values[j] = x[indices[j]], bit for bit.
//
// Reads x once where k is small beside x.size(), and again where it is not or where many elements
// are as large as the k-th. Scratch: some dozens of bytes for each of the k elements, half a
// megabyte, and as much for each thread; of short inputs less, at most 12 bytes for each of x. On
// a GPU the sample is smaller, and so bounds less well: up to 1.5 bytes more for each of x.
void TopK(const Backend& backend, Scratch& scratch, In x, std::span<std::uint32_t> indices,
          Out values);

// With error feedback: p = residual + x (saturating as AddSaturated does, elementwise.h); the top k
// of p; residual = p, and +0 at the indices. The same bits as AddSaturated, TopK of the residual
// and ScatterAdd with weight -1. residual.size() = x.size() (CHECKed).
void TopKFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                  std::span<std::uint32_t> indices, Out values);

// Writes the first indices.size() = values.size() (CHECKed) elements with |x| >= threshold, in
// order of their indices, and to *found, on the backend's device, how many such elements there are,
// which may be more or fewer; what lies behind the last one written is unspecified. threshold >= 0,
// no NaN (CHECKed).
void ThresholdSelect(const Backend& backend, Scratch& scratch, In x, float threshold,
                     std::span<std::uint32_t> indices, Out values, std::uint64_t* found);

// y[indices[j]] = y[indices[j]] + weight * values[j]. Trusts nothing: kCorrupt, with y untouched,
// unless both spans are equally long and indices strictly ascend below y.size().
Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y);

// The same onto zeros, whatever y held: 0 + weight * values[j] at the indices, +0 elsewhere.
Status Scatter(const Backend& backend, std::span<const std::uint32_t> indices, In values,
               float weight, Out y);

SLIMGRAD_KERNEL(TopK);
SLIMGRAD_KERNEL(TopKFeedback);
SLIMGRAD_KERNEL(ThresholdSelect);
SLIMGRAD_KERNEL(ScatterAdd);
SLIMGRAD_KERNEL(Scatter);

}  // namespace slimgrad::kernels
