// Private to the kernels of quantize.h and qsgd.h, which are one another with a different scale and
// rounding: a call, checked, and what it is handed on to; what the elements of a block share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.h"
#include "kernels/backend.h"
#include "kernels/quantize.h"

namespace slimgrad::kernels {

struct EncodeCall {
  const float* x;
  float* residual;  // null without error feedback
  std::size_t n;
  std::size_t block;
  std::size_t blocks;  // ceil(n / block)
  float largest;       // the largest code
  Rounding rounding;
  RandomKey key;
  std::uint8_t* codes;
  float* scales;
};

struct DecodeCall {
  const std::uint8_t* codes;
  const float* scales;
  std::size_t n;
  std::size_t block;
  std::size_t blocks;
  float largest;
  float weight;
  bool add;
  float* y;
};

using EncodeFunction = void(const Backend& backend, const EncodeCall& call);
using DecodeFunction = void(const Backend& backend, const DecodeCall& call);

// Levels are codes of 8 bits too, so that DecodeInt8 decodes them.
namespace cpu {
EncodeFunction EncodeInt8, EncodeInt4, EncodeLevels;
DecodeFunction DecodeInt8, DecodeInt4;
}  // namespace cpu
namespace cuda {
[[gnu::weak]] EncodeFunction EncodeInt8, EncodeInt4, EncodeLevels;
[[gnu::weak]] DecodeFunction DecodeInt8, DecodeInt4;
}  // namespace cuda

// A block whose scale is below kTiny is scaled by a power of two, which brings it into comfortable
// range.
inline constexpr float kTiny = 0x1p-96F;
constexpr bool IsTiny(float scale) { return scale < kTiny; }
inline constexpr float kPower = 0x1p64F;
inline constexpr float kInversePower = 0x1p-64F;
constexpr float Scaled(float scale) { return IsTiny(scale) ? scale * kPower : scale; }

// Codes a unit of scaled x, and the reverse.
constexpr float Factor(float scale, float largest) {
  return scale == 0 ? 0.0F : largest / Scaled(scale);
}
constexpr float Unit(float scale, float largest) { return Scaled(scale) / largest; }

}  // namespace slimgrad::kernels
