// The passes of top-k over a stripe of the tensor: one that collects, one that filters.
#include <algorithm>
#include <bit>

#include "kernels/cpu_saturate.h"
#include "kernels/cpu_select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_pass_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using VI = hn::Vec<DI>;

constexpr std::int32_t kInfinity = 0x7F800000;

HWY_INLINE VI MagnitudeAt(const float* at) {
  return hn::BitCast(kI32, Magnitude(hn::LoadU(kF32, at)));
}

HWY_INLINE bool AnyAbove(VU top, std::int32_t limit) {
  return !hn::AllFalse(kI32, hn::Gt(hn::BitCast(kI32, top), hn::Set(kI32, limit)));
}

// The largest magnitudes of a group, lane by lane.
HWY_INLINE VU TopOf(const float* HWY_RESTRICT at) {
  VU top = hn::Zero(kU32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    top = MaxMagnitude(top, Magnitude(hn::LoadU(kF32, at + v * kLanes)));
  });
  return top;
}

// The indices of a group: consecutive ones, or those of a list.
struct Consecutive {
  std::uint32_t first;
  HWY_INLINE VU operator()(std::size_t v) const {
    return hn::Iota(kU32, 0) + hn::Set(kU32, first + static_cast<std::uint32_t>(v * kLanes));
  }
};
struct Listed {
  const std::uint32_t* at;
  HWY_INLINE VU operator()(std::size_t v) const { return hn::LoadU(kU32, at + v * kLanes); }
};

// Writes the elements of a group above the limit, and up to a group's length beyond; returns how
// many they are.
template <class Indices>
HWY_INLINE std::size_t Put(const float* HWY_RESTRICT at, const Indices& index, std::int32_t limit,
                           std::uint32_t* HWY_RESTRICT indices, float* HWY_RESTRICT values) {
  std::size_t count = 0;
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const VF x = hn::LoadU(kF32, at + v * kLanes);
    const auto take = hn::Gt(hn::BitCast(kI32, Magnitude(x)), hn::Set(kI32, limit));
    const VI bits = hn::BitCast(kI32, x);
    hn::StoreU(hn::BitCast(kU32, hn::Compress(hn::BitCast(kI32, index(v)), take)), kU32,
               indices + count);
    hn::StoreU(hn::BitCast(kF32, hn::Compress(bits, take)), kF32, values + count);
    count += hn::CountTrue(kI32, take);
  });
  return count;
}

// The same to the last places of a sink.
template <class Indices>
HWY_NOINLINE void PutLast(const float* at, const Indices& index, std::int32_t limit, Sink& sink) {
  HWY_ALIGN_MAX std::uint32_t indices[kGroup];
  HWY_ALIGN_MAX float values[kGroup];
  const std::size_t count = Put(at, index, limit, indices, values);
  if (sink.count < sink.room) {
    const std::size_t fit = std::min(count, sink.room - sink.count);
    std::memcpy(sink.indices + sink.count, indices, fit * sizeof(std::uint32_t));
    std::memcpy(sink.values + sink.count, values, fit * sizeof(float));
  }
  sink.count += count;
}

// Whether whole vectors may be written.
HWY_INLINE bool HasRoom(const Sink& sink) { return WithSlack(sink.count) <= sink.room; }

template <class Indices>
HWY_INLINE void Append(const float* HWY_RESTRICT at, const Indices& index, std::int32_t limit,
                       Sink& sink) {
  if (HWY_LIKELY(HasRoom(sink))) {
    sink.count += Put(at, index, limit, sink.indices + sink.count, sink.values + sink.count);
  } else {
    PutLast(at, index, limit, sink);
  }
}

HWY_NOINLINE std::size_t CountEqual(const float* at, std::int32_t magnitude) {
  std::size_t count = 0;
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const auto equal = hn::Eq(MagnitudeAt(at + v * kLanes), hn::Set(kI32, magnitude));
    count += hn::CountTrue(kI32, equal);
  });
  return count;
}

HWY_INLINE bool AnyEqual(const float* HWY_RESTRICT at, std::int32_t magnitude) {
  VI equal = hn::Zero(kI32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    equal = hn::Or(equal, hn::VecFromMask(kI32, hn::Eq(MagnitudeAt(at + v * kLanes),
                                                       hn::Set(kI32, magnitude))));
  });
  return !hn::AllTrue(kI32, hn::Eq(equal, hn::Zero(kI32)));
}

// +0 in place of what is above the limit.
HWY_INLINE void ClearAbove(std::int32_t limit, float* at) {
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const VF x = hn::LoadU(kF32, at + v * kLanes);
    const auto above = hn::Gt(hn::BitCast(kI32, Magnitude(x)), hn::Set(kI32, limit));
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(kF32, above), x), kF32, at + v * kLanes);
  });
}

// --- Collecting

// Appends the magnitudes of a group within (lower, upper] to the band; counts those above.
HWY_INLINE void AppendToBand(const float* HWY_RESTRICT at, Bounds bounds, Stripe& stripe) {
  if (HWY_UNLIKELY(stripe.BandOverflowed())) {
    ++stripe.banded;
    return;
  }
  std::int32_t* HWY_RESTRICT band = stripe.band + stripe.banded;
  std::size_t within_count = 0;
  std::size_t above_count = 0;
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const VI m = MagnitudeAt(at + v * kLanes);
    const auto above = hn::Gt(m, hn::Set(kI32, bounds.upper));
    const auto within = hn::AndNot(above, hn::Gt(m, hn::Set(kI32, bounds.lower)));
    hn::StoreU(hn::Compress(m, within), kI32, band + within_count);
    within_count += hn::CountTrue(kI32, within);
    above_count += hn::CountTrue(kI32, above);
  });
  stripe.banded += within_count;
  stripe.above += above_count;
}

// The band of the list's entries from `seen` on.
void ListToBand(Bounds bounds, std::size_t seen, Stripe& stripe) {
  const std::size_t end = std::min(stripe.list.count, stripe.list.room);
  const float* values = stripe.list.values;
  for (; seen + kGroup <= end; seen += kGroup) AppendToBand(values + seen, bounds, stripe);
  if (seen >= end) return;
  Padded<float> rest;
  std::fill_n(rest.at, kGroup, std::bit_cast<float>(bounds.lower));  // not within
  std::memcpy(rest.at, values + seen, (end - seen) * sizeof(float));
  AppendToBand(rest.at, bounds, stripe);
}

// A group in which something is not below bounds.lower; `residual`, with feedback, is where it is.
template <bool kFeedback, Collect kWhat>
HWY_INLINE void CollectHits(const float* at, float* residual, std::uint32_t index, Bounds bounds,
                            Stripe& stripe) {
  if (HWY_UNLIKELY(AnyEqual(at, bounds.lower))) stripe.ties += CountEqual(at, bounds.lower);
  if constexpr (kWhat == Collect::kBand) {
    AppendToBand(at, bounds, stripe);
  } else {
    const bool clear = kFeedback && HasRoom(stripe.list);
    Append(at, Consecutive{index}, bounds.lower, stripe.list);
    if (clear) ClearAbove(bounds.upper, residual);
  }
}

template <bool kFeedback, Collect kWhat>
HWY_INLINE void CollectGroup(const float* HWY_RESTRICT x, float* HWY_RESTRICT residual,
                             std::uint32_t index, Bounds bounds, Stripe& stripe) {
  VF p[kGroupVectors];
  VU top = hn::Zero(kU32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    p[v] = hn::LoadU(kF32, x + v * kLanes);
    if constexpr (kFeedback) p[v] = hn::LoadU(kF32, residual + v * kLanes) + p[v];
    top = MaxMagnitude(top, Magnitude(p[v]));
  });
  if constexpr (kFeedback) {
    if (HWY_UNLIKELY(AnyAbove(top, kInfinity - 1))) {
      for (std::size_t i = 0; i < kGroup; ++i) residual[i] = SaturatedSum(residual[i], x[i]);
    } else {
      Unroll<kGroupVectors>([&](auto v)
                                HWY_ATTR { hn::StoreU(p[v], kF32, residual + v * kLanes); });
    }
  }
  // What saturates is above all that is finite, as the infinite sum is.
  if (HWY_LIKELY(!AnyAbove(top, std::min(bounds.lower, kInfinity) - 1))) return;
  CollectHits<kFeedback, kWhat>(kFeedback ? residual : x, residual, index, bounds, stripe);
}

template <bool kFeedback, Collect kWhat>
void CollectPart(const float* x, float* residual, std::uint32_t index, std::size_t count,
                 Bounds bounds, Stripe& stripe) {
  const Padded<float> values(x, count);
  Padded<float> sums;
  if constexpr (kFeedback) sums = Padded<float>(residual, count);
  CollectGroup<kFeedback, kWhat>(values.at, sums.at, index, bounds, stripe);
  if constexpr (kFeedback) sums.CopyTo(residual, count);
  // The zeros that it was padded with came last.
  if (bounds.lower == 0) stripe.ties -= kGroup - count;
  if (bounds.lower < 0) stripe.list.count -= kGroup - count;
}

// Elements after which the list's new entries go to the band: while they are in the caches.
constexpr std::size_t kChunk = std::size_t{1} << 14;

template <bool kFeedback, Collect kWhat>
void CollectFrom(const float* x, float* residual, Bounds bounds, Stripe& stripe) {
  for (std::size_t i = stripe.begin; i < stripe.end;) {
    const std::size_t chunk_end = std::min(stripe.end, i + kChunk);
    const std::size_t seen = stripe.list.count;
    for (; chunk_end - i >= kGroup; i += kGroup)
      CollectGroup<kFeedback, kWhat>(x + i, kFeedback ? residual + i : nullptr,
                                     static_cast<std::uint32_t>(i), bounds, stripe);
    if (i < chunk_end)
      CollectPart<kFeedback, kWhat>(x + i, kFeedback ? residual + i : nullptr,
                                    static_cast<std::uint32_t>(i), chunk_end - i, bounds, stripe);
    i = chunk_end;
    if constexpr (kWhat == Collect::kListAndBand) ListToBand(bounds, seen, stripe);
  }
}

template <bool kFeedback>
void CollectWhat(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe) {
  switch (what) {
    case Collect::kList: return CollectFrom<kFeedback, Collect::kList>(x, residual, bounds, stripe);
    case Collect::kListAndBand:
      return CollectFrom<kFeedback, Collect::kListAndBand>(x, residual, bounds, stripe);
    case Collect::kBand: return CollectFrom<kFeedback, Collect::kBand>(x, residual, bounds, stripe);
  }
}

void CollectIn(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe) {
  return residual != nullptr ? CollectWhat<true>(x, residual, bounds, what, stripe)
                             : CollectWhat<false>(x, residual, bounds, what, stripe);
}

// --- Filtering

struct Filtering {
  Cut cut;  // ties: those that are left
  float* zero;
  std::int32_t upper;
  Sink& sink;
};

// The group in which the ties run out.
template <class Indices>
HWY_NOINLINE void FilterOneByOne(const float* at, const Indices& index, std::size_t count,
                                 Filtering& f) {
  HWY_ALIGN_MAX std::uint32_t indices[kGroup];
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR { hn::StoreU(index(v), kU32, indices + v * kLanes); });
  for (std::size_t j = 0; j < count && f.sink.count < f.sink.room; ++j) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(at[j]) & kLargestMagnitude;
    const bool tie = magnitude == f.cut.magnitude && f.cut.ties > 0;
    if (magnitude <= f.cut.magnitude && !tie) continue;
    if (tie) --f.cut.ties;
    f.sink.indices[f.sink.count] = indices[j];
    f.sink.values[f.sink.count++] = at[j];
    if (f.zero != nullptr) f.zero[indices[j]] = 0.0F;
  }
}

// +0 at the indices of those in (limit, upper].
void ZeroListed(const float* at, const std::uint32_t* indices, std::int32_t limit,
                const Filtering& f) {
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const VI m = MagnitudeAt(at + v * kLanes);
    const auto within =
        hn::AndNot(hn::Gt(m, hn::Set(kI32, f.upper)), hn::Gt(m, hn::Set(kI32, limit)));
    std::uint64_t bits = 0;
    hn::StoreMaskBits(kI32, within, reinterpret_cast<std::uint8_t*>(&bits));
    for (; bits != 0; bits &= bits - 1)
      f.zero[indices[v * kLanes + static_cast<std::size_t>(std::countr_zero(bits))]] = 0.0F;
  });
}

HWY_INLINE void Zero(const float* at, Listed index, std::size_t, std::int32_t limit,
                     const Filtering& f) {
  ZeroListed(at, index.at, limit, f);
}
HWY_INLINE void Zero(const float* at, Consecutive index, std::size_t count, std::int32_t limit,
                     const Filtering& f) {
  if (count == kGroup) return ClearAbove(limit, f.zero + index.first);
  for (std::size_t j = 0; j < count; ++j)
    if ((std::bit_cast<std::int32_t>(at[j]) & kLargestMagnitude) > limit)
      f.zero[index.first + j] = 0.0F;
}

template <class Indices>
HWY_INLINE void FilterGroup(const float* at, const Indices& index, std::size_t count,
                            Filtering& f) {
  const std::int32_t limit = f.cut.magnitude - (f.cut.ties > 0 ? 1 : 0);
  if (HWY_LIKELY(!AnyAbove(TopOf(at), limit))) return;
  if (f.cut.ties > 0) {
    const std::size_t equal = CountEqual(at, f.cut.magnitude);
    if (equal >= f.cut.ties) return FilterOneByOne(at, index, count, f);
    f.cut.ties -= equal;
  }
  Append(at, index, limit, f.sink);
  if (f.zero != nullptr) Zero(at, index, count, limit, f);
}

HWY_INLINE Listed IndicesAt(const Source& source, std::size_t i, Listed) {
  return {source.indices + i};
}
HWY_INLINE Consecutive IndicesAt(const Source& source, std::size_t i, Consecutive) {
  return {source.first + static_cast<std::uint32_t>(i)};
}

template <class Indices>
void FilterAll(const Source& source, Filtering& f) {
  std::size_t i = 0;
  for (; source.n - i >= kGroup; i += kGroup) {
    if (f.sink.count >= f.sink.room) return;
    FilterGroup(source.values + i, IndicesAt(source, i, Indices()), kGroup, f);
  }
  const std::size_t rest = source.n - i;
  if (rest == 0 || f.sink.count >= f.sink.room) return;
  const Padded<float> values(source.values + i, rest);
  if constexpr (std::is_same_v<Indices, Listed>) {
    const Padded<std::uint32_t> indices(source.indices + i, rest);
    FilterGroup(values.at, Listed{indices.at}, rest, f);
  } else {
    FilterGroup(values.at, IndicesAt(source, i, Indices()), rest, f);
  }
}

void FilterSource(const Source& source, Cut cut, float* zero, std::int32_t upper, Sink& sink) {
  Filtering filtering = {cut, zero, upper, sink};
  if (source.indices != nullptr) {
    FilterAll<Listed>(source, filtering);
  } else {
    FilterAll<Consecutive>(source, filtering);
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

HWY_EXPORT(CollectIn);
HWY_EXPORT(FilterSource);

void CollectStripe(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe) {
  HWY_DYNAMIC_DISPATCH(CollectIn)(x, residual, bounds, what, stripe);
}

void Filter(const Source& source, Cut cut, float* zero, std::int32_t upper, Sink& sink) {
  HWY_DYNAMIC_DISPATCH(FilterSource)(source, cut, zero, upper, sink);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
