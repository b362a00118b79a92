// The pass of top-k that filters a list, or the tensor, by the cut.
#include <algorithm>
#include <bit>

#include "kernels/cpu_select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_filter_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/select-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// The indices of a group: consecutive ones, or those of a list.
struct Consecutive {
  std::uint32_t first;
  HWY_INLINE VU operator()(std::size_t i) const {
    return IndicesFrom(first + static_cast<std::uint32_t>(i));
  }
};
struct Listed {
  const std::uint32_t* at;
  HWY_INLINE VU operator()(std::size_t i) const { return hn::LoadU(kU32, at + i); }
};

struct Filtering {
  Cut cut;  // ties: those that are left
  float* residual;
  std::int32_t cleared;
};

HWY_INLINE std::size_t CountEqual(const float* at, std::int32_t magnitude) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kGroup; i += kLanes)
    count += hn::CountTrue(kI32, hn::Eq(MagnitudeAt(at + i), hn::Set(kI32, magnitude)));
  return count;
}

// +0 in the residual for those above the limit. Of a list, only what is not yet as it should be is
// touched: its places are far apart.
HWY_INLINE void Clear(const float* at, Listed index, std::size_t n, std::int32_t limit,
                      const Filtering& f) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    const VI m = MagnitudeAt(at + i);
    const MI take = hn::Gt(m, hn::Set(kI32, limit));
    const MI wrong =
        hn::And(hn::Xor(take, hn::Gt(m, hn::Set(kI32, f.cleared))), hn::FirstN(kI32, n - i));
    std::uint64_t bits = 0;
    hn::StoreMaskBits(kI32, wrong, reinterpret_cast<std::uint8_t*>(&bits));
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t j = i + static_cast<std::size_t>(std::countr_zero(bits));
      const bool taken = (std::bit_cast<std::int32_t>(at[j]) & kLargestMagnitude) > limit;
      f.residual[index.at[j]] = taken ? 0.0F : at[j];
    }
  }
}

HWY_INLINE void Clear(const float* at, Consecutive index, std::size_t n, std::int32_t limit,
                      const Filtering& f) {
  float* residual = f.residual + index.first;
  if (n < kGroup) {
    for (std::size_t i = 0; i < n; ++i)
      if ((std::bit_cast<std::int32_t>(at[i]) & kLargestMagnitude) > limit) residual[i] = 0.0F;
    return;
  }
  for (std::size_t i = 0; i < kGroup; i += kLanes) {
    const VF x = hn::LoadU(kF32, at + i);
    const MI above = hn::Gt(MagnitudeOf(x), hn::Set(kI32, limit));
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(kF32, above), x), kF32, residual + i);
  }
}

// The group in which the ties run out.
template <class Indices>
HWY_NOINLINE void FilterOneByOne(const float* at, const Indices& index, std::size_t n, Filtering& f,
                                 Writer& writer) {
  HWY_ALIGN_MAX std::uint32_t indices[kGroup];
  for (std::size_t i = 0; i < kGroup; i += kLanes) hn::StoreU(index(i), kU32, indices + i);
  for (std::size_t i = 0; i < n; ++i) {
    const float x = at[i];  // the residual may be what is read
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(x) & kLargestMagnitude;
    const bool tie = magnitude == f.cut.magnitude && f.cut.ties > 0;
    const bool take = magnitude > f.cut.magnitude || tie;
    if (f.residual != nullptr) f.residual[indices[i]] = take ? 0.0F : x;
    if (!take) continue;
    if (tie) --f.cut.ties;
    writer.indices[writer.count] = indices[i];
    writer.values[writer.count++] = x;
  }
}

template <class Indices>
HWY_INLINE void FilterGroup(const float* at, const Indices& index, std::size_t n, Filtering& f,
                            Writer& writer) {
  const std::int32_t limit = f.cut.magnitude - (f.cut.ties > 0 ? 1 : 0);
  if (!AnyAbove(TopOf<kGroup>(at), std::min(limit, f.cleared))) return;
  if (f.cut.ties > 0) {
    const std::size_t equal = CountEqual(at, f.cut.magnitude);
    if (equal >= f.cut.ties) return FilterOneByOne(at, index, n, f, writer);
    f.cut.ties -= equal;
  }
  for (std::size_t i = 0; i < kGroup; i += kLanes) {
    const VF x = hn::LoadU(kF32, at + i);
    writer.Put(index(i), x, hn::Gt(MagnitudeOf(x), hn::Set(kI32, limit)));
  }
  if (f.residual != nullptr) Clear(at, index, n, limit, f);
}

HWY_INLINE void FilterPart(const Source& source, std::size_t i, Listed, Filtering& f,
                           Writer& writer) {
  const Padded<float> values(source.values + i, source.n - i);
  const Padded<std::uint32_t> indices(source.indices + i, source.n - i);
  FilterGroup(values.at, Listed{indices.at}, source.n - i, f, writer);
}
HWY_INLINE void FilterPart(const Source& source, std::size_t i, Consecutive index, Filtering& f,
                           Writer& writer) {
  const Padded<float> values(source.values + i, source.n - i);
  FilterGroup(values.at, index, source.n - i, f, writer);
}

HWY_INLINE Listed IndicesAt(const Source& source, std::size_t i, Listed) {
  return {source.indices + i};
}
HWY_INLINE Consecutive IndicesAt(const Source& source, std::size_t i, Consecutive) {
  return {source.first + static_cast<std::uint32_t>(i)};
}

template <class Indices>
void FilterAll(const Source& source, Filtering& f, Sink& sink) {
  SinkWriter out(sink);
  for (std::size_t begin = 0; begin < source.n; begin += kChunk) {
    // But a list is read to its end: there may be something to give back.
    if (source.indices == nullptr && sink.count >= sink.room) return;
    const std::size_t end = std::min(source.n, begin + kChunk);
    Writer writer = out.Next();
    std::size_t i = begin;
    for (; end - i >= kGroup; i += kGroup)
      FilterGroup(source.values + i, IndicesAt(source, i, Indices()), kGroup, f, writer);
    if (i < end) FilterPart(source, i, IndicesAt(source, i, Indices()), f, writer);
    out.Take(writer.count);
  }
}

void FilterSource(const Source& source, Cut cut, float* residual, std::int32_t cleared,
                  Sink& sink) {
  Filtering filtering = {cut, residual, cleared};
  if (source.indices != nullptr) {
    FilterAll<Listed>(source, filtering, sink);
  } else {
    FilterAll<Consecutive>(source, filtering, sink);
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

HWY_EXPORT(FilterSource);

void Filter(const Source& source, Cut cut, float* residual, std::int32_t cleared, Sink& sink) {
  HWY_DYNAMIC_DISPATCH(FilterSource)(source, cut, residual, cleared, sink);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
