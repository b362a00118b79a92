#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cpu_low_rank.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/low_rank.h"

namespace slimgrad::kernels::cpu {
namespace {

// Columns 0 ... kWidth - 1 of a factor and of its planes: a width that the compiler knows.
template <std::size_t kWidth>
void ToPlanesSlice(const float* __restrict factor, std::size_t count, std::size_t rank,
                   std::size_t stride, float* __restrict planes) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t r = 0; r < kWidth; ++r) planes[r * stride + i] = factor[i * rank + r];
}

template <std::size_t kWidth>
void FromPlanesSlice(const float* __restrict planes, std::size_t stride, std::size_t count,
                     std::size_t rank, float* __restrict factor) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t r = 0; r < kWidth; ++r) factor[i * rank + r] = planes[r * stride + i];
}

// Calls run.template operator()<kWidth>(first) for slices that make up [0, rank).
template <class RunSlice>
void ForSlices(std::size_t rank, const RunSlice& run) {
  std::size_t first = 0;
  for (; rank - first >= 4; first += 4) run.template operator()<4>(first);
  if (rank - first >= 2) run.template operator()<2>(first), first += 2;
  if (rank - first >= 1) run.template operator()<1>(first);
}

}  // namespace

void FactorToPlanes(const float* factor, std::size_t count, std::size_t rank, Planes planes) {
  ForSlices(rank, [&]<std::size_t kWidth>(std::size_t first) {
    ToPlanesSlice<kWidth>(factor + first, count, rank, planes.stride,
                          planes.at + first * planes.stride);
  });
}

void PlanesToFactor(Planes planes, std::size_t count, std::size_t rank, float* factor) {
  ForSlices(rank, [&]<std::size_t kWidth>(std::size_t first) {
    FromPlanesSlice<kWidth>(planes.at + first * planes.stride, planes.stride, count, rank,
                            factor + first);
  });
}

Planes ToPlanes(const Backend& backend, ScratchScope& scope, In factor, std::size_t count,
                std::size_t rank) {
  const std::size_t stride = PlaneStride(count);
  const Planes planes = {scope.Take<float>(rank * stride).data(), stride};
  ForItems(backend, count, rank, [&](std::size_t begin, std::size_t end) {
    FactorToPlanes(factor.data() + begin * rank, end - begin, rank, {planes.at + begin, stride});
  });
  for (std::size_t r = 0; r < rank; ++r)
    std::fill(planes.at + r * stride + count, planes.at + (r + 1) * stride, 0.0F);
  return planes;
}

bool AllFinite(std::span<const float> values) {
  std::uint32_t found = 0;
  for (const float value : values)
    found |= (std::bit_cast<std::uint32_t>(value) & kF32Infinity) == kF32Infinity ? 1U : 0U;
  return found == 0;
}

float WideProduct(const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                  std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += static_cast<double>(a[i * a_step]) * static_cast<double>(b[i * b_step]);
  return SaturateToFloat(sum);
}

float OuterEntry(const float* p, Planes q, std::size_t j, std::size_t rank) {
  float sum = 0;
  for (std::size_t r = 0; r < rank; ++r) sum += p[r] * q.at[r * q.stride + j];
  return std::isfinite(sum) ? sum : WideProduct(p, 1, q.at + j, q.stride, rank);
}

}  // namespace slimgrad::kernels::cpu
