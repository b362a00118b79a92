// fp32 <-> fp16 and bf16: round to nearest, ties to even; subnormals kept. A NaN becomes the quiet
// NaN of its sign without payload: 7E00, 7FC0 or 7FC00000, and with the sign bit FE00, FFC0 or
// FFC00000.
//
// The spans of one call have equal lengths (CHECKed), any length, and do not overlap.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// What becomes of a finite value that rounds beyond the largest finite one of the narrow type: from
// 65520 on in fp16, from 0x1.FFp127 on in bf16.
enum class Overflow : std::uint8_t {
  kSaturate,  // the largest finite value of its sign
  kInfinity,  // infinity, as IEEE 754 rounds
};

// Adds to *overflowed, on the backend's device, how many finite inputs overflowed; null where
// nobody asks. Infinities stay infinities in both modes.
void F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow,
              std::uint64_t* overflowed);
void F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to, Overflow overflow,
               std::uint64_t* overflowed);

// With error feedback, in one pass: p = residual + x (saturating as AddSaturated does,
// elementwise.h), to = p rounded, residual = p - to. The same bits as AddSaturated, the conversion
// of the residual, and AddScaled of what it decodes to with weight -1; but where x and residual are
// both NaN, the sign of what comes of them is unspecified.
void F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                      Overflow overflow, std::uint64_t* overflowed);
void F32ToBF16Feedback(const Backend& backend, In x, Out residual, std::span<bfloat16_bits> to,
                       Overflow overflow, std::uint64_t* overflowed);

// Exact, but for NaNs (above).
void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to);
void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to);

// y[i] = y[i] + weight * from[i], and y[i] = 0 + weight * from[i]: widened, then one fp32
// multiplication and one addition.
void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y);
void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y);
void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y);
void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y);

// A copy, bit for bit, NaNs too.
void Copy(const Backend& backend, In from, Out to);

SLIMGRAD_KERNEL(F32ToF16);
SLIMGRAD_KERNEL(F32ToBF16);
SLIMGRAD_KERNEL(F32ToF16Feedback);
SLIMGRAD_KERNEL(F32ToBF16Feedback);
SLIMGRAD_KERNEL(F16ToF32);
SLIMGRAD_KERNEL(BF16ToF32);
SLIMGRAD_KERNEL(F16DecodeAdd);
SLIMGRAD_KERNEL(BF16DecodeAdd);
SLIMGRAD_KERNEL(F16Decode);
SLIMGRAD_KERNEL(BF16Decode);
SLIMGRAD_KERNEL(Copy);

// The same by a view's dtype: F32 (a copy), F16 or BF16. CHECK the dtype, and that the view lies on
// the backend's device.
void Widen(const Backend& backend, const ConstView& from, Out to);
void Narrow(const Backend& backend, In from, const View& to, Overflow overflow,
            std::uint64_t* overflowed);

}  // namespace slimgrad::kernels
