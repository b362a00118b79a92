#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/cpu_ranges.h"
#include "kernels/quantize.h"

namespace slimgrad::kernels::cpu {
namespace {

constexpr float kLargestCode = 127.0F;

// The power of two that brings a block with this absmax into comfortable range.
float Power(float absmax) { return absmax < 0x1p-96F ? 0x1p64F : 1.0F; }

// To [-limit, limit]. A NaN becomes the limit, so that a conversion to an integer is defined.
float Clamp(float value, float limit) {
  value = value < limit ? value : limit;
  return value > -limit ? value : -limit;
}

// Ties to even. Adding 1.5 * 2^23 leaves no bits behind the point; |value| <= 127.
float RoundToEven(float value) {
  constexpr float kMagic = 0x1.8p23F;
  return (value + kMagic) - kMagic;
}

// |value| <= 128.
float Floor(float value) {
  const auto truncated = static_cast<float>(static_cast<std::int32_t>(value));
  return truncated > value ? truncated - 1.0F : truncated;
}

float AbsMax(const float* __restrict x, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

void EncodeNearest(const float* __restrict x, std::size_t n, float power, float inverse,
                   std::int8_t* __restrict codes) {
  for (std::size_t i = 0; i < n; ++i) {
    const float v = (x[i] * power) * inverse;
    codes[i] =
        static_cast<std::int8_t>(static_cast<std::int32_t>(RoundToEven(Clamp(v, kLargestCode))));
  }
}

// Element i of the call is element first + i of the random stream, which comes 8 elements at a
// time.
void EncodeStochastic(const float* __restrict x, std::size_t n, float power, float inverse,
                      const RandomKey& key, std::size_t first, std::int8_t* __restrict codes) {
  for (std::size_t i = 0; i < n;) {
    const std::size_t lane = (first + i) % 8;
    const std::size_t count = std::min(8 - lane, n - i);
    const auto words = Philox(key, (first + i) / 8);
    for (std::size_t j = 0; j < count; ++j, ++i) {
      const std::uint32_t random = (words[(lane + j) / 2] >> (16 * ((lane + j) % 2))) & 0xFFFF;
      const float v = (x[i] * power) * inverse;
      const float dithered = v + (static_cast<float>(random) + 0.5F) * 0x1p-16F;
      const float code = Clamp(Floor(Clamp(dithered, 128.0F)), kLargestCode);
      codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(code));
    }
  }
}

}  // namespace

void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax) {
  SLIMGRAD_CHECK(block > 0 && codes.size() == x.size() &&
                 absmax.size() == BlockCount(x.size(), block));
  ForItems(backend, absmax.size(), block, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t begin = b * block;
      const std::size_t count = std::min(block, x.size() - begin);
      const float largest = AbsMax(x.data() + begin, count);
      const float power = Power(largest);
      const float inverse = largest == 0 ? 0.0F : kLargestCode / (largest * power);
      absmax[b] = largest;
      if (rounding == Rounding::kNearest) {
        EncodeNearest(x.data() + begin, count, power, inverse, codes.data() + begin);
      } else {
        EncodeStochastic(x.data() + begin, count, power, inverse, key, begin, codes.data() + begin);
      }
    }
  });
}

void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y) {
  SLIMGRAD_CHECK(block > 0 && codes.size() == y.size() &&
                 absmax.size() == BlockCount(y.size(), block));
  ForItems(backend, absmax.size(), block, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t begin = b * block;
      const std::size_t count = std::min(block, y.size() - begin);
      const float power = Power(absmax[b]);
      const float unit = (absmax[b] * power) / kLargestCode;
      const float inverse_power = 1.0F / power;
      const float limit = absmax[b];
      const std::int8_t* __restrict in = codes.data() + begin;
      float* __restrict out = y.data() + begin;
      for (std::size_t i = 0; i < count; ++i)
        out[i] = out[i] + weight * Clamp((static_cast<float>(in[i]) * unit) * inverse_power, limit);
    }
  });
}

}  // namespace slimgrad::kernels::cpu
