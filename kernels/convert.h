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

// Return how many finite inputs overflowed. Infinities stay infinities in both modes.
std::uint64_t F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow);
std::uint64_t F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to,
                        Overflow overflow);

// With error feedback, in one pass: p = residual + x (saturating as AddSaturated does,
// elementwise.h), to = p rounded, residual = p - to. The same bits as AddSaturated, the conversion
// of the residual, and AddScaled of what it decodes to with weight -1.
std::uint64_t F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                               Overflow overflow);
std::uint64_t F32ToBF16Feedback(const Backend& backend, In x, Out residual,
                                std::span<bfloat16_bits> to, Overflow overflow);

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

namespace ref {
std::uint64_t F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow);
std::uint64_t F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to,
                        Overflow overflow);
std::uint64_t F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                               Overflow overflow);
std::uint64_t F32ToBF16Feedback(const Backend& backend, In x, Out residual,
                                std::span<bfloat16_bits> to, Overflow overflow);
void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to);
void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to);
void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y);
void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y);
void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y);
void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y);
void Copy(const Backend& backend, In from, Out to);
}  // namespace ref

namespace cpu {
std::uint64_t F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow);
std::uint64_t F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to,
                        Overflow overflow);
std::uint64_t F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                               Overflow overflow);
std::uint64_t F32ToBF16Feedback(const Backend& backend, In x, Out residual,
                                std::span<bfloat16_bits> to, Overflow overflow);
void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to);
void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to);
void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y);
void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y);
void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y);
void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y);
void Copy(const Backend& backend, In from, Out to);
}  // namespace cpu

// The same by a view's dtype: F32 (a copy), F16 or BF16. CHECK the dtype, and that the view lies on
// the backend's device.
void Widen(const Backend& backend, const ConstView& from, Out to);
std::uint64_t Narrow(const Backend& backend, In from, const View& to, Overflow overflow);

}  // namespace slimgrad::kernels
