// Blocks of 8-bit or 4-bit integers that share one scale: symmetric, absmax.
//
// absmax[b] = max |x| over the block (finite x). A block is tiny when absmax < 2^-96;
// p is 2^64 in a tiny block, else 1. L, the largest code, is 127 for Int8 and 7 for Int4:
//
//   encode  v = (x * p) * (L / (absmax * p))
//           nearest: q = v rounded, ties to even
//           stochastic: q = floor(v + (r + 0.5) * 2^-16), r = Random16(key, i), i over the call
//           then q is clamped to [-L, L]; where absmax is 0, q = 0
//   decode  (q * ((absmax * p) / L)) * (1 / p), then clamped to [-absmax, absmax]
//
// each operation rounded to fp32 once. The power of two keeps L / absmax finite and the unit a
// normal number; the clamp keeps L units from rounding beyond the largest float. The grid of r
// biases a stochastic code by less than 2^-16.
//
// Int8 has a byte a code. Int4 has two a byte: element 2j is the lower nibble of byte j, element
// 2j + 1 the upper, both in two's complement; with n odd, the last upper nibble is written 0 and
// never read. Blocks of Int4 are even, so that each begins with a byte.
//
// Spans: n codes or ceil(n / 2) bytes, ceil(n / block) scales, n residuals or results; block > 0,
// and even for Int4 (all CHECKed). They do not overlap. Any block works; those of multiples of 64
// are fast. Where x or residual is not finite, the block's codes and residuals are unspecified.
// Decoding takes any bytes: a scale that is not finite decodes to what is not finite, a code of
// -128 (-8) to -absmax.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/tensor.h"
#include "kernels/backend.h"
#include "kernels/blocks.h"

namespace slimgrad::kernels {

enum class Rounding : std::uint8_t { kNearest, kStochastic };

// ceil(n / 2), the bytes of n codes of 4 bits.
constexpr std::size_t Int4Bytes(std::size_t n) { return n / 2 + n % 2; }

// `key` is read by stochastic rounding only.
void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax);
void Int4Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::uint8_t> codes, Out absmax);

// With error feedback, in one pass: p = residual + x (saturating as AddSaturated does,
// elementwise.h), the code of p, residual = p - decoded. The same bits as AddSaturated, encoding
// the residual, and DecodeAdd to it with weight -1.
void Int8EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::int8_t> codes,
                        Out absmax);
void Int4EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::uint8_t> codes,
                        Out absmax);

// y[i] = 0 + weight * decoded[i]
void Int8Decode(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                std::size_t block, float weight, Out y);
void Int4Decode(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                std::size_t block, float weight, Out y);

// y[i] = y[i] + weight * decoded[i]
void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y);
void Int4DecodeAdd(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                   std::size_t block, float weight, Out y);

SLIMGRAD_REFERENCE(Int8Encode);
SLIMGRAD_REFERENCE(Int4Encode);
SLIMGRAD_REFERENCE(Int8EncodeFeedback);
SLIMGRAD_REFERENCE(Int4EncodeFeedback);
SLIMGRAD_REFERENCE(Int8Decode);
SLIMGRAD_REFERENCE(Int4Decode);
SLIMGRAD_REFERENCE(Int8DecodeAdd);
SLIMGRAD_REFERENCE(Int4DecodeAdd);

}  // namespace slimgrad::kernels
