#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/quantize.h"

namespace slimgrad::kernels::ref {
namespace {

// Code i of Int8 or Int4 as a number.
float CodeAt(std::span<const std::int8_t> codes, std::size_t i) { return codes[i]; }

float CodeAt(std::span<const std::uint8_t> codes, std::size_t i) {
  const int nibble = i % 2 == 0 ? codes[i / 2] % 16 : codes[i / 2] / 16;
  return static_cast<float>(nibble < 8 ? nibble : nibble - 16);
}

void SetCode(std::span<std::int8_t> codes, std::size_t i, int q) {
  codes[i] = static_cast<std::int8_t>(q);
}

void SetCode(std::span<std::uint8_t> codes, std::size_t i, int q) {
  const int nibble = q < 0 ? q + 16 : q;
  if (i % 2 == 0) {
    codes[i / 2] = static_cast<std::uint8_t>(nibble);
  } else {
    codes[i / 2] = static_cast<std::uint8_t>(codes[i / 2] + 16 * nibble);
  }
}

float PowerOf(float absmax) { return absmax < std::ldexp(1.0F, -96) ? std::ldexp(1.0F, 64) : 1.0F; }

template <class Code>
void Encode(In x, std::size_t block, Rounding rounding, const RandomKey& key, float largest,
            std::span<Code> codes, Out absmax) {
  for (float& scale : absmax) scale = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    absmax[i / block] = std::fmax(absmax[i / block], std::fabs(x[i]));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale = absmax[i / block];
    float q = 0;
    if (scale != 0) {
      const float p = PowerOf(scale);
      const float scaled = scale * p;
      const float factor = largest / scaled;
      const float grown = x[i] * p;
      const float v = grown * factor;
      if (rounding == Rounding::kNearest) {
        q = std::nearbyint(v);
      } else {
        const float dither = std::ldexp(static_cast<float>(Random16(key, i)) + 0.5F, -16);
        q = std::floor(v + dither);
      }
      if (q > largest) q = largest;
      if (q < -largest) q = -largest;
    }
    SetCode(codes, i, static_cast<int>(q));
  }
}

template <class Code>
float DecodedAt(std::span<const Code> codes, In absmax, std::size_t block, float largest,
                std::size_t i) {
  const float scale = absmax[i / block];
  const float p = PowerOf(scale);
  const float scaled = scale * p;
  const float unit = scaled / largest;
  const float grown = CodeAt(codes, i) * unit;
  float decoded = grown * (1.0F / p);
  if (decoded > scale) decoded = scale;
  if (decoded < -scale) decoded = -scale;
  return decoded;
}

template <class Code>
void DecodeAdd(std::span<const Code> codes, In absmax, std::size_t block, float largest,
               float weight, Out y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float product = weight * DecodedAt(codes, absmax, block, largest, i);
    y[i] = y[i] + product;
  }
}

}  // namespace

void Int8Encode(const Backend&, In x, std::size_t block, Rounding rounding, const RandomKey& key,
                std::span<std::int8_t> codes, Out absmax) {
  Encode(x, block, rounding, key, 127.0F, codes, absmax);
}

void Int4Encode(const Backend&, In x, std::size_t block, Rounding rounding, const RandomKey& key,
                std::span<std::uint8_t> codes, Out absmax) {
  Encode(x, block, rounding, key, 7.0F, codes, absmax);
}

void Int8EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::int8_t> codes,
                        Out absmax) {
  ref::AddSaturated(backend, x, residual);
  ref::Int8Encode(backend, residual, block, rounding, key, codes, absmax);
  ref::Int8DecodeAdd(backend, codes, absmax, block, -1.0F, residual);
}

void Int4EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::uint8_t> codes,
                        Out absmax) {
  ref::AddSaturated(backend, x, residual);
  ref::Int4Encode(backend, residual, block, rounding, key, codes, absmax);
  ref::Int4DecodeAdd(backend, codes, absmax, block, -1.0F, residual);
}

void Int8Decode(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                std::size_t block, float weight, Out y) {
  for (float& value : y) value = 0;
  ref::Int8DecodeAdd(backend, codes, absmax, block, weight, y);
}

void Int4Decode(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                std::size_t block, float weight, Out y) {
  for (float& value : y) value = 0;
  ref::Int4DecodeAdd(backend, codes, absmax, block, weight, y);
}

void Int8DecodeAdd(const Backend&, std::span<const std::int8_t> codes, In absmax, std::size_t block,
                   float weight, Out y) {
  DecodeAdd(codes, absmax, block, 127.0F, weight, y);
}

void Int4DecodeAdd(const Backend&, std::span<const std::uint8_t> codes, In absmax,
                   std::size_t block, float weight, Out y) {
  DecodeAdd(codes, absmax, block, 7.0F, weight, y);
}

}  // namespace slimgrad::kernels::ref
