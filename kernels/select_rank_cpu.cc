// Radix selection of magnitudes that lie in the caches: the range of those that are left is cut
// into bins, the bin that holds the rank stays.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cpu_select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_rank_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/select-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

Bounds RangeOf(const std::int32_t* magnitudes, std::size_t n) {
  std::int32_t lower = kLargestMagnitude;
  std::int32_t upper = 0;
  for (std::size_t i = 0; i < n; ++i) {
    lower = std::min(lower, magnitudes[i]);
    upper = std::max(upper, magnitudes[i]);
  }
  return {lower, upper};
}

// May be in place: nothing is written before it is read.
std::size_t Keep(const std::int32_t* from, std::size_t n, Bounds bounds, std::int32_t* to) {
  const VI lower = hn::Set(kI32, bounds.lower - 1);
  const VI upper = hn::Set(kI32, bounds.upper);
  std::size_t kept = 0;
  std::size_t i = 0;
  for (; n - i >= kLanes; i += kLanes) {
    const VI m = hn::LoadU(kI32, from + i);
    const LanePacker pack(hn::AndNot(hn::Gt(m, upper), hn::Gt(m, lower)));
    hn::StoreU(pack(m), kI32, to + kept);
    kept += pack.count();
  }
  for (; i < n; ++i)
    if (bounds.lower <= from[i] && from[i] <= bounds.upper) to[kept++] = from[i];
  return kept;
}

constexpr std::size_t kBins = 2048;

// Two histograms that are added up: equal neighbours do not wait for each other.
void CountBins(const std::int32_t* magnitudes, std::size_t n, std::int32_t lower, int shift,
               std::size_t bins, std::uint32_t* HWY_RESTRICT counts) {
  std::array<std::uint32_t, kBins> odd;
  std::fill_n(odd.begin(), bins, 0U);
  std::fill_n(counts, bins, 0U);
  std::size_t i = 0;
  for (; i + 2 <= n; i += 2) {
    ++counts[(magnitudes[i] - lower) >> shift];
    ++odd[static_cast<std::size_t>((magnitudes[i + 1] - lower) >> shift)];
  }
  if (i < n) ++counts[(magnitudes[i] - lower) >> shift];
  for (std::size_t b = 0; b < bins; ++b) counts[b] += odd[b];
}

Cut Rank(std::int32_t* magnitudes, std::size_t n, std::size_t rank) {
  std::array<std::uint32_t, kBins> counts;
  Bounds range = RangeOf(magnitudes, n);
  while (range.lower < range.upper) {
    const int bin_bits = n < 4096 ? 8 : 11;
    const auto width = static_cast<std::uint32_t>(range.upper - range.lower);
    const int shift = std::max(0, static_cast<int>(std::bit_width(width)) - bin_bits);
    const std::size_t bins = (width >> shift) + 1;
    CountBins(magnitudes, n, range.lower, shift, bins, counts.data());
    std::size_t bin = bins - 1;
    for (; counts[bin] < rank; --bin) rank -= counts[bin];
    range.lower += static_cast<std::int32_t>(bin << shift);
    range.upper = range.lower + std::min(range.upper - range.lower, (1 << shift) - 1);
    if (range.lower < range.upper) n = Keep(magnitudes, n, range, magnitudes);
  }
  return {range.lower, rank};
}

void ToMagnitudes(const float* x, std::size_t n, std::int32_t* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = std::bit_cast<std::int32_t>(x[i]) & kLargestMagnitude;
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

HWY_EXPORT(Rank);
HWY_EXPORT(Keep);
HWY_EXPORT(ToMagnitudes);

Cut SelectRank(std::int32_t* magnitudes, std::size_t n, std::size_t rank) {
  return HWY_DYNAMIC_DISPATCH(Rank)(magnitudes, n, rank);
}

std::size_t KeepWithin(const std::int32_t* magnitudes, std::size_t n, Bounds bounds,
                       std::int32_t* to) {
  return HWY_DYNAMIC_DISPATCH(Keep)(magnitudes, n, bounds, to);
}

void Magnitudes(const float* x, std::size_t n, std::int32_t* to) {
  HWY_DYNAMIC_DISPATCH(ToMagnitudes)(x, n, to);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
