#include <cfloat>
#include <cmath>

#include "core/check.h"
#include "kernels/elementwise.h"
#include "kernels/ref_small_float.h"

namespace slimgrad::kernels::ref {

void CopyBytes(const Backend&, std::span<const std::byte> from, std::span<std::byte> to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

void Fill(const Backend&, float value, Out y) {
  for (float& element : y) element = value;
}

void AddScaled(const Backend&, In x, float weight, Out y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float product = weight * x[i];
    y[i] = y[i] + product;
  }
}

void AddSaturated(const Backend&, In x, Out y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool finite = std::isfinite(x[i]) && std::isfinite(y[i]);
    y[i] = y[i] + x[i];
    if (finite && std::isinf(y[i])) y[i] = y[i] > 0 ? FLT_MAX : -FLT_MAX;
  }
}

void Divide(const Backend&, float divisor, Out y, std::uint64_t* non_finite) {
  *non_finite = 0;
  for (float& element : y) {
    element = element / divisor;
    if (!std::isfinite(element)) ++*non_finite;
  }
}

void CountNonFinite(const Backend&, const ConstView& x, std::uint64_t* count) {
  *count = 0;
  for (std::size_t i = 0; i < x.numel; ++i) {
    float value = 0;
    if (x.dtype == DType::kF16)
      value = FromSmallFloat(kHalf, static_cast<std::uint16_t>(x.As<half_bits>()[i]));
    else if (x.dtype == DType::kBF16)
      value = FromSmallFloat(kBrain, static_cast<std::uint16_t>(x.As<bfloat16_bits>()[i]));
    else
      value = x.As<float>()[i];
    if (std::isnan(value) || std::isinf(value)) ++*count;
  }
}

}  // namespace slimgrad::kernels::ref
