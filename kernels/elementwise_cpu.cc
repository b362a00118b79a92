#include <algorithm>
#include <atomic>
#include <bit>

#include "core/check.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/elementwise.h"

namespace slimgrad::kernels::cpu {
namespace {

// Elements whose exponent bits are all set. `Word` is read as is: no fp operation can trap, quiet
// or flush.
template <class Word, class Element>
std::uint64_t CountExponent(const Backend& backend, std::span<const Element> x, Word exponent) {
  std::atomic<std::uint64_t> total = 0;
  ForElements(backend, x.size(), [&](std::size_t begin, std::size_t end) {
    std::uint32_t count = 0;
    for (std::size_t i = begin; i < end; ++i)
      count += static_cast<std::uint32_t>((std::bit_cast<Word>(x[i]) & exponent) == exponent);
    total.fetch_add(count, std::memory_order_relaxed);
  });
  return total;
}

}  // namespace

void Fill(const Backend& backend, float value, Out y) {
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    std::fill(y.data() + begin, y.data() + end, value);
  });
}

void AddScaled(const Backend& backend, In x, float weight, Out y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  ForElements(backend, y.size(), [&, weight](std::size_t begin, std::size_t end) {
    const float* __restrict in = x.data();
    float* __restrict out = y.data();
    for (std::size_t i = begin; i < end; ++i) out[i] = out[i] + weight * in[i];
  });
}

void AddSaturated(const Backend& backend, In x, Out y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    const float* __restrict in = x.data();
    float* __restrict out = y.data();
    for (std::size_t i = begin; i < end; ++i) out[i] = SaturatedSum(out[i], in[i]);
  });
}

void Divide(const Backend& backend, float divisor, Out y) {
  ForElements(backend, y.size(), [&, divisor](std::size_t begin, std::size_t end) {
    float* __restrict out = y.data();
    for (std::size_t i = begin; i < end; ++i) out[i] = out[i] / divisor;
  });
}

std::uint64_t CountNonFinite(const Backend& backend, const ConstView& x) {
  switch (x.dtype) {
    case DType::kF32: return CountExponent<std::uint32_t>(backend, x.As<float>(), 0x7F800000);
    case DType::kF16: return CountExponent<std::uint16_t>(backend, x.As<half_bits>(), 0x7C00);
    case DType::kBF16: return CountExponent<std::uint16_t>(backend, x.As<bfloat16_bits>(), 0x7F80);
    default:
      SLIMGRAD_CHECK(x.dtype == DType::kF32 || x.dtype == DType::kF16 || x.dtype == DType::kBF16);
      return 0;
  }
}

}  // namespace slimgrad::kernels::cpu
