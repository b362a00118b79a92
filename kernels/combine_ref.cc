#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/check.h"
#include "kernels/combine.h"
#include "kernels/ref_small_float.h"

namespace slimgrad::kernels::ref {
namespace {

// Element i of every rank, in rank order.
template <class T>
std::vector<T> Elements(std::span<const std::span<const std::byte>> inputs, std::size_t i) {
  std::vector<T> elements;
  for (const auto& input : inputs) {
    T value;
    std::memcpy(&value, input.data() + i * sizeof(T), sizeof(T));
    elements.push_back(value);
  }
  return elements;
}

float Mean(const std::vector<float>& x) {
  float sum = x[0];
  for (std::size_t r = 1; r < x.size(); ++r) sum = sum + x[r];
  if (!std::isnan(sum) && !std::isinf(sum)) return sum / static_cast<float>(x.size());
  double wide = x[0];
  for (std::size_t r = 1; r < x.size(); ++r) wide = wide + x[r];
  const double mean = wide / static_cast<double>(x.size());
  if (std::isnan(mean)) return std::bit_cast<float>(0x7FC00000);
  if (std::isinf(mean)) return static_cast<float>(mean);
  if (mean > std::numeric_limits<float>::max()) return std::numeric_limits<float>::max();
  if (mean < -std::numeric_limits<float>::max()) return -std::numeric_limits<float>::max();
  return static_cast<float>(mean);
}

std::uint16_t SmallMean(const SmallFloat& format, const std::vector<std::uint16_t>& codes) {
  std::vector<float> values;
  values.reserve(codes.size());
  for (std::uint16_t code : codes) values.push_back(FromSmallFloat(format, code));
  return ToSmallFloat(format, Mean(values), /*saturate=*/true).code;
}

template <class T>
T Sum(const std::vector<T>& x) {
  T sum = 0;
  for (T value : x) sum = static_cast<T>(sum + value);
  return sum;
}

template <class T>
T Max(const std::vector<T>& x) {
  std::size_t best = 0;
  for (std::size_t r = 1; r < x.size(); ++r)
    if (x[r] > x[best]) best = r;
  return x[best];
}

}  // namespace

void Combine(const Backend&, CombineOp op, DType dtype,
             std::span<const std::span<const std::byte>> inputs, std::span<std::byte> to) {
  const std::size_t size = SizeOf(dtype);
  SLIMGRAD_CHECK(!inputs.empty() && to.size() % size == 0);
  for (std::size_t i = 0; i < to.size() / size; ++i) {
    const auto store = [&](auto value) { std::memcpy(to.data() + i * size, &value, size); };
    if (op == CombineOp::kMean && dtype == DType::kF32)
      store(Mean(Elements<float>(inputs, i)));
    else if (op == CombineOp::kMean && dtype == DType::kF16)
      store(SmallMean(kHalf, Elements<std::uint16_t>(inputs, i)));
    else if (op == CombineOp::kMean && dtype == DType::kBF16)
      store(SmallMean(kBrain, Elements<std::uint16_t>(inputs, i)));
    else if (op == CombineOp::kSum && dtype == DType::kI32)
      store(Sum(Elements<std::uint32_t>(inputs, i)));
    else if (op == CombineOp::kSum && dtype == DType::kU64)
      store(Sum(Elements<std::uint64_t>(inputs, i)));
    else if (op == CombineOp::kMax && dtype == DType::kF32)
      store(Max(Elements<float>(inputs, i)));
    else if (op == CombineOp::kMax && dtype == DType::kU8)
      store(Max(Elements<std::uint8_t>(inputs, i)));
    else
      SLIMGRAD_CHECK(false);
  }
}

}  // namespace slimgrad::kernels::ref
