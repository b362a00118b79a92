// Private to the cpu kernels of quantize.h and qsgd.h, which are one another with a different
// scale and rounding: what a call is, and what the elements of a block share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.h"
#include "kernels/cpu_ranges.h"
#include "kernels/quantize.h"

namespace slimgrad::kernels::cpu {

struct EncodeCall {
  const float* x;
  float* residual;  // null without error feedback
  std::size_t n;
  std::size_t block;
  float largest;  // the largest code
  Rounding rounding;
  RandomKey key;
  bool stream;  // past the caches; codes begin at a multiple of 16 bytes then, as all blocks do
  std::uint8_t* codes;
  float* scales;
};

struct DecodeCall {
  const std::uint8_t* codes;
  const float* scales;
  std::size_t n;
  std::size_t block;
  float largest;
  float weight;
  bool add;
  bool stream;  // not with add; y begins at a multiple of 64 bytes then, as all blocks do
  float* y;
};

// Whether a block is scaled by a power of two, which brings it into comfortable range.
inline bool IsTiny(float scale) { return scale < 0x1p-96F; }
inline constexpr float kPower = 0x1p64F;
inline constexpr float kInversePower = 0x1p-64F;
inline float Scaled(float scale) { return IsTiny(scale) ? scale * kPower : scale; }

// Codes a unit of scaled x, and the reverse.
inline float Factor(float scale, float largest) {
  return scale == 0 ? 0.0F : largest / Scaled(scale);
}
inline float Unit(float scale, float largest) { return Scaled(scale) / largest; }

// QsgdDecode and Int8Decode differ in the largest code.
void DecodeInt8Blocks(const Backend& backend, const DecodeCall& call);

// Whether the codes of a call are streamed: blocks of `block_bytes` from `codes` on.
inline bool StreamsCodes(const void* codes, std::size_t bytes, std::size_t block_bytes) {
  return OutgrowsCaches(bytes) && block_bytes % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(codes) % 16 == 0;
}

// Whether results are: blocks of `block` floats from y on.
inline bool StreamsResults(In y, std::size_t block) {
  return OutgrowsCaches(y.size_bytes()) && block % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(y.data()) % 64 == 0;
}

}  // namespace slimgrad::kernels::cpu
