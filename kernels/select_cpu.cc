#include <array>
#include <bit>
#include <string>

#include "core/check.h"
#include "kernels/select.h"

namespace slimgrad::kernels::cpu {
namespace {

// Magnitudes order as their bits do.
std::uint32_t MagnitudeBits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF;
}

struct Threshold {
  std::uint32_t magnitude;  // the k-th largest magnitude
  std::size_t ties;         // how many elements of exactly this magnitude belong to the k
};

// Radix selection over the 31 bits, 11, 10 and 10 at a time from the top: three passes and a
// histogram on the stack, whatever n and the distribution. k >= 1.
Threshold FindThreshold(In x, std::size_t k) {
  struct Digit {
    int shift;
    std::uint32_t bins;
  };
  constexpr std::array kDigits = {Digit{20, 1U << 11}, Digit{10, 1U << 10}, Digit{0, 1U << 10}};

  Threshold threshold = {0, k};
  std::uint32_t known = 0;  // the bits of threshold.magnitude that are decided
  for (const Digit& digit : kDigits) {
    std::array<std::uint64_t, 1U << 11> counts = {};
    for (float value : x) {
      const std::uint32_t bits = MagnitudeBits(value);
      if ((bits & known) == threshold.magnitude) ++counts[(bits >> digit.shift) & (digit.bins - 1)];
    }
    std::uint32_t bin = digit.bins - 1;
    for (; counts[bin] < threshold.ties; --bin) threshold.ties -= counts[bin];
    threshold.magnitude |= bin << digit.shift;
    known |= (digit.bins - 1) << digit.shift;
  }
  return threshold;
}

}  // namespace

void TopK(const Backend&, In x, std::span<std::uint32_t> indices, Out values) {
  const std::size_t k = indices.size();
  SLIMGRAD_CHECK(k <= x.size() && values.size() == k);
  SLIMGRAD_CHECK(x.size() <= std::size_t{1} << 32);
  if (k == 0) return;
  Threshold threshold = FindThreshold(x, k);
  for (std::size_t i = 0, taken = 0; taken < k; ++i) {
    const std::uint32_t bits = MagnitudeBits(x[i]);
    if (bits < threshold.magnitude) continue;
    if (bits == threshold.magnitude) {
      if (threshold.ties == 0) continue;
      --threshold.ties;
    }
    indices[taken] = static_cast<std::uint32_t>(i);
    values[taken] = x[i];
    ++taken;
  }
}

Status ScatterAdd(const Backend&, std::span<const std::uint32_t> indices, In values, float weight,
                  Out y) {
  if (indices.size() != values.size()) {
    return Corrupt("values: expected " + std::to_string(indices.size()) +
                   ", as many as indices, found " + std::to_string(values.size()));
  }
  std::uint64_t least = 0;
  for (std::size_t j = 0; j < indices.size(); ++j) {
    if (indices[j] < least || indices[j] >= y.size()) {
      return Corrupt("indices[" + std::to_string(j) + "]: expected at least " +
                     std::to_string(least) + " and less than " + std::to_string(y.size()) +
                     ", found " + std::to_string(indices[j]));
    }
    least = std::uint64_t{indices[j]} + 1;
  }
  for (std::size_t j = 0; j < indices.size(); ++j) {
    float& target = y[indices[j]];
    target = target + weight * values[j];
  }
  return {};
}

}  // namespace slimgrad::kernels::cpu
