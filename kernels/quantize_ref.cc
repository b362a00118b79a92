#include <cmath>
#include <limits>

#include "kernels/quantize.h"

namespace slimgrad::kernels::ref {

void Int8Encode(const Backend&, In x, std::size_t block, Rounding rounding, const RandomKey& key,
                std::span<std::int8_t> codes, Out absmax) {
  for (float& scale : absmax) scale = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    absmax[i / block] = std::fmax(absmax[i / block], std::fabs(x[i]));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale = absmax[i / block];
    if (scale == 0) {
      codes[i] = 0;
      continue;
    }
    const float p = scale < std::ldexp(1.0F, -96) ? std::ldexp(1.0F, 64) : 1.0F;
    const float scaled = scale * p;
    const float factor = 127.0F / scaled;
    const float grown = x[i] * p;
    const float v = grown * factor;
    float q = 0;
    if (rounding == Rounding::kNearest) {
      q = std::nearbyint(v);
    } else {
      const float dither = std::ldexp(static_cast<float>(Random16(key, i)) + 0.5F, -16);
      q = std::floor(v + dither);
    }
    if (q > 127) q = 127;
    if (q < -127) q = -127;
    codes[i] = static_cast<std::int8_t>(q);
  }
}

void Int8DecodeAdd(const Backend&, std::span<const std::int8_t> codes, In absmax, std::size_t block,
                   float weight, Out y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float scale = absmax[i / block];
    const float p = scale < std::ldexp(1.0F, -96) ? std::ldexp(1.0F, 64) : 1.0F;
    const float scaled = scale * p;
    const float unit = scaled / 127.0F;
    const float grown = static_cast<float>(codes[i]) * unit;
    float decoded = grown * (1.0F / p);
    if (decoded > scale) decoded = scale;
    if (decoded < -scale) decoded = -scale;
    const float product = weight * decoded;
    y[i] = y[i] + product;
  }
}

}  // namespace slimgrad::kernels::ref
