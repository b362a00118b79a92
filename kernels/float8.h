// fp32 <-> the two 8-bit floats of the Open Compute Project (OCP 8-bit Floating Point
// Specification, revision 1.0): round to nearest, ties to even; subnormals kept, of inputs too.
//
// A NaN becomes the NaN of its sign: 7F of E4M3 and 7E of E5M2, FF and FE with the sign bit; and
// widened, whichever of E5M2's three it is, 7FC00000 or FFC00000.
//
// E4M3 has no infinity, and where one is called for, its NaN stands in: that of an infinite input,
// in both modes of Overflow, and of a finite one that overflows in kInfinity. So no input that is
// not finite becomes finite, as in convert.h. (The specification's saturating conversion makes
// infinities finite. Here kSaturate speaks of finite inputs only.)
//
// The spans of one call have equal lengths (CHECKed), any length, and do not overlap. A code is a
// byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"
#include "kernels/convert.h"

namespace slimgrad::kernels {

enum class Float8 : std::uint8_t {
  kE4M3,  // sign, 4 bits of exponent (bias 7), 3 of fraction: to 448, in steps of 2^-9 from 0
  kE5M2,  // sign, 5 bits of exponent (bias 15), 2 of fraction: to 57344, in steps of 2^-16 from 0
};

// Adds to *overflowed, on the backend's device, how many finite inputs overflowed: beyond 464 in
// E4M3 (464 itself is a tie, and 448 even), from 61440 on in E5M2. Null where nobody asks.
void F32ToF8(const Backend& backend, Float8 format, In from, std::span<std::uint8_t> to,
             Overflow overflow, std::uint64_t* overflowed);

// With error feedback, in one pass: p = residual + x (saturating as AddSaturated does,
// elementwise.h), to = p rounded, residual = p - to. The same bits as AddSaturated, the conversion
// of the residual, and AddScaled of what it decodes to with weight -1; but where x and residual are
// both NaN, the sign of what comes of them is unspecified. With kSaturate, the residual of finite x
// and residual is finite.
void F32ToF8Feedback(const Backend& backend, Float8 format, In x, Out residual,
                     std::span<std::uint8_t> to, Overflow overflow, std::uint64_t* overflowed);

// Exact, but for NaNs (above).
void F8ToF32(const Backend& backend, Float8 format, std::span<const std::uint8_t> from, Out to);

// y[i] = 0 + weight * from[i], and y[i] = y[i] + weight * from[i]: widened, then one fp32
// multiplication and one addition.
void F8Decode(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
              float weight, Out y);
void F8DecodeAdd(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
                 float weight, Out y);

SLIMGRAD_KERNEL(F32ToF8);
SLIMGRAD_KERNEL(F32ToF8Feedback);
SLIMGRAD_KERNEL(F8ToF32);
SLIMGRAD_KERNEL(F8Decode);
SLIMGRAD_KERNEL(F8DecodeAdd);

}  // namespace slimgrad::kernels
