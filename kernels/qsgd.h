// QSGD (Alistarh et al. 2017): buckets of elements that share their 2-norm; an element's code is
// its magnitude as a share of the norm, in `levels` levels, rounded at random, with its sign.
//
// norm[b] = square root of the sum of squares of bucket b (finite x), at most the largest float:
//
//   the sum is the LaneSum (sums.h) of x * x in fp32, and the root is in fp32; where that sum is
//   not finite or is below 2^-100, where squares may have lost bits, both are formed again in fp64
//   and the root is rounded to fp32, saturating
//
// A bucket is tiny when norm < 2^-96; p is 2^64 in a tiny bucket, else 1. With s = levels:
//
//   encode  level = floor((|x| * p) * (s / (norm * p)) + (r + 0.5) * 2^-16), at most s
//           r = Random16(key, i), i over the call; where norm is 0, level = 0
//           q = level with the sign of x
//   decode  (q * ((norm * p) / s)) * (1 / p), then clamped to [-norm, norm]
//
// each operation rounded to fp32 once. The grid of r biases a level by less than 2^-16.
//
// Spans: n codes, ceil(n / bucket) norms, n residuals or results; bucket > 0, levels in [1, 127]
// (all CHECKed). They do not overlap. Any bucket works; multiples of 64 are fast. Where x or
// residual is not finite, the bucket's codes and residuals are unspecified. Decoding takes any
// bytes: a norm that is not finite decodes to what is not finite, a code beyond s to norm.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/tensor.h"
#include "kernels/backend.h"
#include "kernels/blocks.h"

namespace slimgrad::kernels {

inline constexpr int kMaxQsgdLevels = 127;

void QsgdEncode(const Backend& backend, In x, std::size_t bucket, int levels, const RandomKey& key,
                std::span<std::int8_t> codes, Out norms);

// With error feedback, in one pass: p = residual + x (saturating as AddSaturated does,
// elementwise.h), the code of p, residual = p - decoded. The same bits as AddSaturated, QsgdEncode
// of the residual, and QsgdDecodeAdd to it with weight -1.
void QsgdEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t bucket, int levels,
                        const RandomKey& key, std::span<std::int8_t> codes, Out norms);

// y[i] = 0 + weight * decoded[i]
void QsgdDecode(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                std::size_t bucket, int levels, float weight, Out y);

// y[i] = y[i] + weight * decoded[i]
void QsgdDecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                   std::size_t bucket, int levels, float weight, Out y);

SLIMGRAD_REFERENCE(QsgdEncode);
SLIMGRAD_REFERENCE(QsgdEncodeFeedback);
SLIMGRAD_REFERENCE(QsgdDecode);
SLIMGRAD_REFERENCE(QsgdDecodeAdd);

}  // namespace slimgrad::kernels
