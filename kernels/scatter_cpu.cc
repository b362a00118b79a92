// The sparse additions of select.h.
#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/cpu_ranges.h"
#include "kernels/select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scatter_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Whether each of n indices is below the next one, which is there.
bool Ascends(const std::uint32_t* indices, std::size_t n) {
  std::uint32_t wrong = 0;
  for (std::size_t j = 0; j < n; ++j) wrong |= indices[j] < indices[j + 1] ? 0U : 1U;
  return wrong == 0;
}

constexpr std::size_t kAhead = 32;

// Prefetches what is added to some entries later: indices are far apart.
void AddAt(const std::uint32_t* indices, const float* values, std::size_t n, float weight,
           float* y) {
  for (std::size_t j = 0; j < n; ++j) {
    hwy::Prefetch(y + indices[std::min(j + kAhead, n - 1)]);
    float& target = y[indices[j]];
    target = target + weight * values[j];
  }
}

constexpr std::size_t kTile = 1024;  // elements

// y[0 ... count): zeros, and 0 + weight * value at the n indices, counted from `first`. `zeros` are
// kTile zeros, and are so again afterwards.
template <bool kStream>
void ScatterTile(const std::uint32_t* indices, const float* values, std::size_t n, float weight,
                 std::uint32_t first, std::size_t count, float* HWY_RESTRICT zeros,
                 float* HWY_RESTRICT y) {
  for (std::size_t j = 0; j < n; ++j) zeros[indices[j] - first] = 0.0F + weight * values[j];
  if (kStream && count == kTile) {
    for (std::size_t i = 0; i < kTile; i += kLanes)
      StoreAligned<true>(hn::Load(kF32, zeros + i), kF32, y + i);
  } else {
    std::memcpy(y, zeros, count * sizeof(float));
  }
  for (std::size_t j = 0; j < n; ++j) zeros[indices[j] - first] = 0.0F;
}

template <bool kStream>
void ScatterRange(const std::uint32_t* indices, const float* values, std::size_t n, float weight,
                  std::size_t begin, std::size_t end, float* y) {
  HWY_ALIGN_MAX float zeros[kTile] = {};
  std::size_t j = 0;
  for (std::size_t i = begin; i < end;) {
    // A first tile that ends with a cache line, so that the others are aligned.
    const std::size_t to_line = kStream && i == begin ? BeforeLine(y + i, end - i) : 0;
    const std::size_t count = to_line > 0 ? to_line : std::min(kTile, end - i);
    const std::size_t first = j;
    while (j < n && indices[j] < i + count) ++j;
    ScatterTile<kStream>(indices + first, values + first, j - first, weight,
                         static_cast<std::uint32_t>(i), count, zeros, y + i);
    i += count;
  }
  if (kStream) FlushStream();
}

void ScatterIn(const std::uint32_t* indices, const float* values, std::size_t n, float weight,
               std::size_t begin, std::size_t end, bool stream, float* y) {
  return stream ? ScatterRange<true>(indices, values, n, weight, begin, end, y)
                : ScatterRange<false>(indices, values, n, weight, begin, end, y);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

HWY_EXPORT(Ascends);
HWY_EXPORT(AddAt);
HWY_EXPORT(ScatterIn);

namespace {

// Names the first index that is wrong.
Status CheckOneByOne(std::span<const std::uint32_t> indices, std::size_t size) {
  std::uint64_t least = 0;
  for (std::size_t j = 0; j < indices.size(); ++j) {
    if (indices[j] < least || indices[j] >= size) {
      return Corrupt("indices[" + std::to_string(j) + "]: expected at least " +
                     std::to_string(least) + " and less than " + std::to_string(size) + ", found " +
                     std::to_string(indices[j]));
    }
    least = std::uint64_t{indices[j]} + 1;
  }
  return {};
}

Status Check(const Backend& backend, std::span<const std::uint32_t> indices, std::size_t size) {
  if (indices.empty()) return {};
  std::atomic<bool> ascends = indices.back() < size;
  ForElements(backend, indices.size() - 1, [&](std::size_t begin, std::size_t end) {
    if (!HWY_DYNAMIC_DISPATCH(Ascends)(indices.data() + begin, end - begin)) ascends = false;
  });
  return ascends ? Status() : CheckOneByOne(indices, size);
}

}  // namespace

Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y) {
  SLIMGRAD_RETURN_IF_ERROR(Check(backend, indices, y.size()));
  ForElements(backend, indices.size(), [&](std::size_t begin, std::size_t end) {
    HWY_DYNAMIC_DISPATCH(AddAt)
    (indices.data() + begin, values.data() + begin, end - begin, weight, y.data());
  });
  return {};
}

Status Scatter(const Backend& backend, std::span<const std::uint32_t> indices, In values,
               float weight, Out y) {
  SLIMGRAD_RETURN_IF_ERROR(Check(backend, indices, y.size()));
  const bool stream = OutgrowsCaches(y.size_bytes());
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    const auto from = std::ranges::lower_bound(indices, begin) - indices.begin();
    const auto to = std::ranges::lower_bound(indices, end) - indices.begin();
    HWY_DYNAMIC_DISPATCH(ScatterIn)
    (indices.data() + from, values.data() + from, static_cast<std::size_t>(to - from), weight,
     begin, end, stream, y.data());
  });
  return {};
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
