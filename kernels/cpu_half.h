// Private to the cpu kernels: one value of fp32 to and from fp16 and bf16, as bits. Selects in
// place of branches, so that loops over these vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "core/dtype.h"
#include "kernels/convert.h"
#include "kernels/cpu_saturate.h"

namespace slimgrad::kernels::cpu {

inline constexpr std::uint32_t kF32Magnitude = 0x7FFFFFFF;
inline constexpr std::uint32_t kF32QuietNan = 0x7FC00000;

inline constexpr std::uint16_t kF16Infinity = 0x7C00;
inline constexpr std::uint16_t kBF16Infinity = 0x7F80;

// What becomes of a value once it is widened.
enum class Then {
  kStore,  // y = value
  kScale,  // y = 0 + weight * value
  kAdd,    // y = y + weight * value
};

// What a format makes of a magnitude that it cannot hold: its infinity, or the code below.
inline constexpr std::uint32_t LargestCode(std::uint32_t infinity, Overflow overflow) {
  return overflow == Overflow::kInfinity ? infinity : infinity - 1;
}

// The smallest fp32 magnitudes that round to infinity in fp16 (65520) and bf16.
inline constexpr std::uint32_t kF16OverflowsFrom = 0x477FF000;
inline constexpr std::uint32_t kBF16OverflowsFrom = 0x7F7F8000;

// 1 for a finite value that overflows, else 0.
inline std::uint32_t Overflows(float value, std::uint32_t from) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & kF32Magnitude;
  return static_cast<std::uint32_t>(magnitude >= from) &
         static_cast<std::uint32_t>(magnitude < kF32Infinity);
}

inline std::uint16_t F16Code(float value, std::uint32_t largest) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kF32Magnitude;
  // Half of the dropped 13 bits, less one where the kept part is even: ties go to even. The
  // exponent bias falls by 112.
  std::uint32_t code = ((magnitude + 0xFFF + ((magnitude >> 13) & 1)) >> 13) - (112U << 10);
  // Below 2^-14 the grid is 2^-24, which is the unit in the last place of floats in [0.5, 1): an
  // addition rounds.
  const float subnormal = std::bit_cast<float>(magnitude) + 0.5F;
  code = magnitude < 0x38800000 ? std::bit_cast<std::uint32_t>(subnormal) - 0x3F000000 : code;
  code = magnitude >= kF16OverflowsFrom ? largest : code;
  code = magnitude >= kF32Infinity ? kF16Infinity : code;
  code = magnitude > kF32Infinity ? 0x7E00U : code;
  return static_cast<std::uint16_t>(code | ((bits >> 16) & 0x8000));
}

inline std::uint16_t BF16Code(float value, std::uint32_t largest) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kF32Magnitude;
  std::uint32_t code = (magnitude + 0x7FFF + ((magnitude >> 16) & 1)) >> 16;
  code = magnitude >= kBF16OverflowsFrom ? largest : code;
  code = magnitude >= kF32Infinity ? kBF16Infinity : code;
  code = magnitude > kF32Infinity ? 0x7FC0U : code;
  return static_cast<std::uint16_t>(code | ((bits >> 16) & 0x8000));
}

inline float FromF16(std::uint16_t code) {
  const std::uint32_t magnitude = code & 0x7FFFU;
  // A subnormal m * 2^-24 is the distance of 0.5 + m * 2^-24 from 0.5; both are floats.
  const float subnormal = std::bit_cast<float>(magnitude | 0x3F000000) - 0.5F;
  std::uint32_t bits = (magnitude << 13) + (112U << 23);
  bits = magnitude < 0x0400 ? std::bit_cast<std::uint32_t>(subnormal) : bits;
  bits = magnitude >= kF16Infinity ? kF32Infinity : bits;
  bits = magnitude > kF16Infinity ? kF32QuietNan : bits;
  return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(code & 0x8000U) << 16));
}

inline float FromBF16(std::uint16_t code) {
  const std::uint32_t bits = static_cast<std::uint32_t>(code) << 16;
  const std::uint32_t nan = (bits & 0x80000000) | kF32QuietNan;
  return std::bit_cast<float>((bits & kF32Magnitude) > kF32Infinity ? nan : bits);
}

}  // namespace slimgrad::kernels::cpu
