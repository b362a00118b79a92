#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elementwise.h"
#include "kernels/qsgd.h"
#include "kernels/ref_lane_sum.h"

namespace slimgrad::kernels::ref {
namespace {

float NormOf(In x) {
  const float sum = LaneSum<float>(x.size(), [&](std::size_t i) { return x[i] * x[i]; });
  if (std::isfinite(sum) && sum >= std::ldexp(1.0F, -100)) return std::sqrt(sum);
  const double wide = LaneSum<double>(x.size(), [&](std::size_t i) {
    return static_cast<double>(x[i]) * static_cast<double>(x[i]);
  });
  const double root = std::sqrt(wide);
  const double most = std::numeric_limits<float>::max();
  return static_cast<float>(std::isfinite(root) ? std::min(root, most) : root);
}

float PowerOf(float norm) { return norm < std::ldexp(1.0F, -96) ? std::ldexp(1.0F, 64) : 1.0F; }

int LevelOf(float x, float norm, float s, std::uint16_t random) {
  const float p = PowerOf(norm);
  const float scaled = norm * p;
  const float factor = s / scaled;
  const float grown = std::fabs(x) * p;
  const float v = grown * factor;
  const float dither = std::ldexp(static_cast<float>(random) + 0.5F, -16);
  return static_cast<int>(std::min(std::floor(v + dither), s));
}

}  // namespace

void QsgdEncode(const Backend&, In x, std::size_t bucket, int levels, const RandomKey& key,
                std::span<std::int8_t> codes, Out norms) {
  for (std::size_t b = 0; b < norms.size(); ++b)
    norms[b] = NormOf(x.subspan(b * bucket, std::min(bucket, x.size() - b * bucket)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float norm = norms[i / bucket];
    const int level =
        norm == 0 ? 0 : LevelOf(x[i], norm, static_cast<float>(levels), Random16(key, i));
    codes[i] = static_cast<std::int8_t>(x[i] < 0 ? -level : level);
  }
}

void QsgdEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t bucket, int levels,
                        const RandomKey& key, std::span<std::int8_t> codes, Out norms) {
  ref::AddSaturated(backend, x, residual);
  ref::QsgdEncode(backend, residual, bucket, levels, key, codes, norms);
  ref::QsgdDecodeAdd(backend, codes, norms, bucket, levels, -1.0F, residual);
}

void QsgdDecode(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                std::size_t bucket, int levels, float weight, Out y) {
  for (float& value : y) value = 0;
  ref::QsgdDecodeAdd(backend, codes, norms, bucket, levels, weight, y);
}

void QsgdDecodeAdd(const Backend&, std::span<const std::int8_t> codes, In norms, std::size_t bucket,
                   int levels, float weight, Out y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float norm = norms[i / bucket];
    const float p = PowerOf(norm);
    const float scaled = norm * p;
    const float unit = scaled / static_cast<float>(levels);
    const float grown = static_cast<float>(codes[i]) * unit;
    float decoded = grown * (1.0F / p);
    if (decoded > norm) decoded = norm;
    if (decoded < -norm) decoded = -norm;
    const float product = weight * decoded;
    y[i] = y[i] + product;
  }
}

}  // namespace slimgrad::kernels::ref
