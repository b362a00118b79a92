// Blocks of 8-bit integers that share one scale: symmetric, absmax, codes -127 ... 127.
//
// absmax[b] = max |x| over the block (finite x). A block is tiny when absmax < 2^-96;
// p is 2^64 in a tiny block, else 1.
//
//   encode  v = (x * p) * (127 / (absmax * p))
//           nearest: q = v rounded, ties to even
//           stochastic: q = floor(v + (r + 0.5) * 2^-16), r = Random16(key, i), i over the call
//           then q is clamped to [-127, 127]; where absmax is 0, q = 0
//   decode  (q * ((absmax * p) / 127)) * (1 / p), then clamped to [-absmax, absmax]
//
// each operation rounded to fp32 once. The power of two keeps 127 / absmax finite and the unit a
// normal number; the clamp keeps 127 units from rounding beyond the largest float. The grid of r
// biases a stochastic code by less than 2^-16.
//
// Spans: n codes, ceil(n / block) scales, block > 0 (CHECKed); they do not overlap.
// Decoding takes any bytes: a scale that is not finite decodes to what is not finite, a code of
// -128 to -absmax.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/tensor.h"
#include "kernels/backend.h"
#include "kernels/blocks.h"

namespace slimgrad::kernels {

enum class Rounding : std::uint8_t { kNearest, kStochastic };

// `key` is read by stochastic rounding only.
void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax);

// y[i] = y[i] + weight * decoded[i]
void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y);

namespace ref {
void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax);
void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y);
}  // namespace ref

namespace cpu {
void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax);
void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y);
}  // namespace cpu

}  // namespace slimgrad::kernels
