// The exact cut by histograms over all elements, for inputs that mislead every guess: 31 bits in
// digits of 11, 10 and 10, from the top.
#include <array>
#include <bit>

#include "kernels/cpu_select.h"

namespace slimgrad::kernels::cpu {
namespace {

constexpr std::size_t kBins = 2048;
using Histogram = std::array<std::uint64_t, kBins>;

struct Digit {
  int shift;
  std::int32_t bins;
};
constexpr std::array kDigits = {Digit{20, 2048}, Digit{10, 1024}, Digit{0, 1024}};

void CountDigit(In x, const Digit& digit, std::int32_t known, std::int32_t prefix,
                Histogram& counts) {
  counts.fill(0);
  for (float value : x) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(value) & kLargestMagnitude;
    if ((magnitude & known) != prefix) continue;
    ++counts[static_cast<std::size_t>((magnitude >> digit.shift) & (digit.bins - 1))];
  }
}

}  // namespace

Cut ExactCut(const Backend& backend, Scratch& scratch, std::span<const Stripe> stripes, In x,
             std::size_t k) {
  ScratchScope scope(scratch);
  const std::span<Histogram> counts = scope.Take<Histogram>(stripes.size());
  Cut cut = {0, k};
  std::int32_t known = 0;  // the bits of cut.magnitude that are decided
  for (const Digit& digit : kDigits) {
    backend.executor->ParallelFor(stripes.size(), [&](std::size_t s) {
      CountDigit(x.subspan(stripes[s].begin, stripes[s].end - stripes[s].begin), digit, known,
                 cut.magnitude, counts[s]);
    });
    for (std::size_t s = 1; s < stripes.size(); ++s)
      for (std::size_t b = 0; b < kBins; ++b) counts[0][b] += counts[s][b];
    std::int32_t bin = digit.bins - 1;
    for (; counts[0][static_cast<std::size_t>(bin)] < cut.ties; --bin)
      cut.ties -= counts[0][static_cast<std::size_t>(bin)];
    cut.magnitude |= bin << digit.shift;
    known |= (digit.bins - 1) << digit.shift;
  }
  return cut;
}

}  // namespace slimgrad::kernels::cpu
