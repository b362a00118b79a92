// Passes over whole tensors, one fp32 rounding an operation (no fused multiply-add).
//
// The spans of one call have equal lengths (CHECKed), any length, and do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// A copy of any bytes. Copy of convert.h is the faster one for fp32.
void CopyBytes(const Backend& backend, std::span<const std::byte> from, std::span<std::byte> to);

// y[i] = value
void Fill(const Backend& backend, float value, Out y);

// y[i] = y[i] + weight * x[i]: one multiplication, one addition. A weight of 1 or -1 makes the
// product exact.
void AddScaled(const Backend& backend, In x, float weight, Out y);

// y[i] = y[i] + x[i]; where finite terms sum to infinity, the largest finite fp32 of that sign.
void AddSaturated(const Backend& backend, In x, Out y);

// y[i] = y[i] / divisor. *non_finite, on the backend's device, becomes how many of the results are
// NaN or infinite, which saves a CountNonFinite of them.
void Divide(const Backend& backend, float divisor, Out y, std::uint64_t* non_finite);

// *count, on the backend's device, becomes how many elements are NaN or infinite; dtype F32, F16 or
// BF16, on the backend's device (CHECKed). Reads the bits as integers: no floating-point operation,
// so no mode of the processor can change the answer.
void CountNonFinite(const Backend& backend, const ConstView& x, std::uint64_t* count);

SLIMGRAD_KERNEL(CopyBytes);
SLIMGRAD_KERNEL(Fill);
SLIMGRAD_KERNEL(AddScaled);
SLIMGRAD_KERNEL(AddSaturated);
SLIMGRAD_KERNEL(Divide);
SLIMGRAD_KERNEL(CountNonFinite);

}  // namespace slimgrad::kernels
