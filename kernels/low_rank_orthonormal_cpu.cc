#include <algorithm>
#include <cmath>

#include "kernels/cpu_low_rank.h"
#include "kernels/cpu_ranges.h"
#include "kernels/low_rank.h"
#include "kernels/sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/low_rank_orthonormal_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

void DivideRange(double divisor, std::size_t n, float* HWY_RESTRICT v) {
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>(static_cast<double>(v[i]) / divisor);
}

// Takes the parts along `count` columns out of v.
void SubtractRange(Planes columns, const double* parts, std::size_t count, std::size_t n,
                   float* HWY_RESTRICT v) {
  for (std::size_t begin = 0; begin < n; begin += kGroup) {
    const std::size_t size = std::min(kGroup, n - begin);
    double rest[kGroup];
    for (std::size_t i = 0; i < size; ++i) rest[i] = v[begin + i];
    for (std::size_t k = 0; k < count; ++k) {
      const float* HWY_RESTRICT column = columns.at + k * columns.stride + begin;
      const double part = parts[k];
      for (std::size_t i = 0; i < size; ++i) rest[i] -= part * static_cast<double>(column[i]);
    }
    for (std::size_t i = 0; i < size; ++i) v[begin + i] = static_cast<float>(rest[i]);
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(DivideRange);
HWY_EXPORT(SubtractRange);

// v = v / |v|; returns |v| as it was.
double Normalize(const Backend& backend, Out v) {
  const double length = std::sqrt(SumSquares(backend, v));
  if (length == 0) return 0;
  const auto divide = HWY_DYNAMIC_DISPATCH(DivideRange);
  ForElements(backend, v.size(), [&](std::size_t begin, std::size_t end) {
    divide(length, end - begin, v.data() + begin);
  });
  return length;
}

// Takes the parts along columns 0 ... c - 1 out of v, kProjectColumns of them at a time.
void Project(const Backend& backend, Planes columns, std::size_t c, Out v) {
  const auto subtract = HWY_DYNAMIC_DISPATCH(SubtractRange);
  for (std::size_t first = 0; first < c; first += kProjectColumns) {
    const std::size_t count = std::min(kProjectColumns, c - first);
    const Planes some = {columns.at + first * columns.stride, columns.stride};
    double parts[kProjectColumns];
    for (std::size_t k = 0; k < count; ++k)
      parts[k] = Dot(backend, In(some.at + k * some.stride, v.size()), v);
    ForElements(backend, v.size(), [&](std::size_t begin, std::size_t end) {
      subtract({some.at + begin, some.stride}, parts, count, end - begin, v.data() + begin);
    });
  }
}

// False, with v spoilt, where it is zero or depends on columns 0 ... c - 1.
bool MakeOrthonormal(const Backend& backend, Planes columns, std::size_t c, Out v) {
  if (Normalize(backend, v) == 0) return false;
  Project(backend, columns, c, v);
  if (Normalize(backend, v) < 0x1p-20) return false;
  Project(backend, columns, c, v);
  Normalize(backend, v);
  return true;
}

}  // namespace

void Orthonormalize(const Backend& backend, Scratch& scratch, std::size_t rows, std::size_t rank,
                    const RandomKey& key, Out p) {
  ScratchScope scope(scratch);
  const Planes columns = ToPlanes(backend, scope, p, rows, rank);
  for (std::size_t c = 0; c < rank; ++c) {
    const Out v = {columns.at + c * columns.stride, rows};
    // A random direction may in turn be no good, with a probability below 2^-18 each time.
    for (std::uint64_t attempt = 0; !MakeOrthonormal(backend, columns, c, v); ++attempt) {
      for (std::size_t i = 0; i < rows; ++i)
        v[i] = Uniform(key, attempt * p.size() + i * rank + c) - 0.5F;
    }
  }
  ForItems(backend, rows, rank, [&](std::size_t begin, std::size_t end) {
    PlanesToFactor({columns.at + begin, columns.stride}, end - begin, rank,
                   p.data() + begin * rank);
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
