// One bit an element, with the levels of its block beside it. A block is `block` elements, the last
// one may be shorter.
//
// Bits: bit i % 8 of byte i / 8 is set where x[i] >= 0 (also -0.0); the spare bits of the last byte
// are 0. x is finite; a NaN would count as negative.
//
// Block means: LaneSum of the members (kernels/sums.h) / their count (rounded to fp32), with the
// widening described there; a widened sum is divided in fp64, then rounded to fp32, so a mean of
// finite values is finite. +0 where a block has no member of that sign.
//
// Spans: ceil(n / 8) bytes of bits, ceil(n / block) levels, block > 0 (CHECKed); they do not
// overlap. Decoding takes any bytes and never reads the spare bits.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"
#include "kernels/blocks.h"

namespace slimgrad::kernels {

constexpr std::size_t BitBytes(std::size_t n) { return n / 8 + (n % 8 != 0); }

// The bits alone, and what they say: y[i] = bit i ? 1 : -1.
void SignPack(const Backend& backend, In x, std::span<std::uint8_t> bits);
void SignUnpack(const Backend& backend, std::span<const std::uint8_t> bits, Out y);

// positive[b] and negative[b]: mean of the block's elements >= 0, and of those < 0 (Seide et al.
// 2014, section 3.1). For the lane sums, elements of the other sign count as 0 in their lane.
void OneBitEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                  Out positive, Out negative);

// With error feedback, in one pass: p = residual + x (saturating as AddSaturated does,
// elementwise.h) is encoded, residual = p - decoded. The same bits as AddSaturated, OneBitEncode of
// the residual, and OneBitDecodeAdd to it with weight -1. x and residual are finite, of equal
// lengths (CHECKed).
void OneBitEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                          std::span<std::uint8_t> bits, Out positive, Out negative);

// y[i] = 0 + weight * (bit i ? positive[b] : negative[b]), never -0; y is only written.
void OneBitDecode(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                  In negative, std::size_t block, float weight, Out y);

// y[i] = y[i] + weight * (bit i ? positive[b] : negative[b])
void OneBitDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                     In negative, std::size_t block, float weight, Out y);

// scale[b]: mean of the block's |x| (Karimireddy et al. 2019, section 4).
void ScaledSignEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale);

// As OneBitEncodeFeedback is to OneBitEncode.
void ScaledSignEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                              std::span<std::uint8_t> bits, Out scale);

// y[i] = 0 + weight * (bit i ? scale[b] : -scale[b]), never -0; y is only written.
void ScaledSignDecode(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                      std::size_t block, float weight, Out y);

// y[i] = y[i] + weight * (bit i ? scale[b] : -scale[b])
void ScaledSignDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                         std::size_t block, float weight, Out y);

SLIMGRAD_KERNEL(SignPack);
SLIMGRAD_KERNEL(SignUnpack);
SLIMGRAD_KERNEL(OneBitEncode);
SLIMGRAD_KERNEL(OneBitEncodeFeedback);
SLIMGRAD_KERNEL(OneBitDecode);
SLIMGRAD_KERNEL(OneBitDecodeAdd);
SLIMGRAD_KERNEL(ScaledSignEncode);
SLIMGRAD_KERNEL(ScaledSignEncodeFeedback);
SLIMGRAD_KERNEL(ScaledSignDecode);
SLIMGRAD_KERNEL(ScaledSignDecodeAdd);

}  // namespace slimgrad::kernels
