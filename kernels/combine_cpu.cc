#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/check.h"
#include "kernels/combine.h"
#include "kernels/cpu_half.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_ranges.h"

namespace slimgrad::kernels::cpu {
namespace {

using Inputs = std::span<const std::span<const std::byte>>;

// Elements of one pass over all inputs: the accumulators stay in the first-level cache, whatever
// the number of inputs.
constexpr std::size_t kTile = 1024;

// Payload memory is bytes: any alignment.
template <class T>
T Load(const std::byte* from, std::size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void Store(std::byte* to, std::size_t i, T value) {
  std::memcpy(to + i * sizeof(T), &value, sizeof(T));
}

// How a float dtype is read and written.
struct F32 {
  using Bits = float;
  static float Widen(float value) { return value; }
  static float Narrow(float value) { return value; }
};
struct F16 {
  using Bits = std::uint16_t;
  static float Widen(Bits code) { return FromF16(code); }
  static Bits Narrow(float value) {
    return F16Code(value, LargestCode(0x7C00, Overflow::kSaturate));
  }
};
struct BF16 {
  using Bits = std::uint16_t;
  static float Widen(Bits code) { return FromBF16(code); }
  static Bits Narrow(float value) {
    return BF16Code(value, LargestCode(0x7F80, Overflow::kSaturate));
  }
};

// The mean of element i where its fp32 sum is not finite.
template <class Format>
float WideMean(Inputs inputs, std::size_t i) {
  double sum = 0;
  for (const auto& input : inputs)
    sum += Format::Widen(Load<typename Format::Bits>(input.data(), i));
  const double mean = sum / static_cast<double>(inputs.size());
  return std::isnan(mean) ? std::numeric_limits<float>::quiet_NaN() : SaturateToFloat(mean);
}

template <class Format>
void Mean(Inputs inputs, std::span<std::byte> to, std::size_t begin, std::size_t end) {
  using Bits = typename Format::Bits;
  alignas(64) float sum[kTile];
  const auto divisor = static_cast<float>(inputs.size());
  for (std::size_t at = begin; at < end; at += kTile) {
    const std::size_t count = std::min(kTile, end - at);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] = Format::Widen(Load<Bits>(inputs[0].data(), at + i));
    for (const auto& input : inputs.subspan(1)) {
      const std::byte* x = input.data();
      for (std::size_t i = 0; i < count; ++i) sum[i] += Format::Widen(Load<Bits>(x, at + i));
    }
    for (std::size_t i = 0; i < count; ++i)
      sum[i] = std::isfinite(sum[i]) ? sum[i] / divisor : WideMean<Format>(inputs, at + i);
    // Last, since `to` may be inputs[0].
    for (std::size_t i = 0; i < count; ++i) Store(to.data(), at + i, Format::Narrow(sum[i]));
  }
}

// to = inputs folded by `fold` in rank order.
template <class T, class FoldTwo>
void Fold(Inputs inputs, std::span<std::byte> to, std::size_t begin, std::size_t end,
          FoldTwo fold) {
  alignas(64) T folded[kTile];
  for (std::size_t at = begin; at < end; at += kTile) {
    const std::size_t count = std::min(kTile, end - at);
    std::memcpy(folded, inputs[0].data() + at * sizeof(T), count * sizeof(T));
    for (const auto& input : inputs.subspan(1)) {
      const std::byte* x = input.data();
      for (std::size_t i = 0; i < count; ++i) folded[i] = fold(folded[i], Load<T>(x, at + i));
    }
    std::memcpy(to.data() + at * sizeof(T), folded, count * sizeof(T));
  }
}

void CombineRange(CombineOp op, DType dtype, Inputs inputs, std::span<std::byte> to,
                  std::size_t begin, std::size_t end) {
  const auto sum = [](auto a, auto b) { return a + b; };
  const auto max = [](auto a, auto b) { return b > a ? b : a; };
  switch (dtype) {
    case DType::kF32:
      if (op == CombineOp::kMean) return Mean<F32>(inputs, to, begin, end);
      return Fold<float>(inputs, to, begin, end, max);
    case DType::kF16: return Mean<F16>(inputs, to, begin, end);
    case DType::kBF16: return Mean<BF16>(inputs, to, begin, end);
    case DType::kI32:  // as unsigned: wraps
      return Fold<std::uint32_t>(inputs, to, begin, end, sum);
    case DType::kU64: return Fold<std::uint64_t>(inputs, to, begin, end, sum);
    default: return Fold<std::uint8_t>(inputs, to, begin, end, max);
  }
}

}  // namespace

void Combine(const Backend& backend, CombineOp op, DType dtype, Inputs inputs,
             std::span<std::byte> to) {
  SLIMGRAD_CHECK(CanCombine(op, dtype));
  SLIMGRAD_CHECK(!inputs.empty());
  SLIMGRAD_CHECK(to.size() % SizeOf(dtype) == 0);
  for (const auto& input : inputs) SLIMGRAD_CHECK(input.size() == to.size());
  ForElements(backend, to.size() / SizeOf(dtype), [&](std::size_t begin, std::size_t end) {
    CombineRange(op, dtype, inputs, to, begin, end);
  });
}

}  // namespace slimgrad::kernels::cpu
