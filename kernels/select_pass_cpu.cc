// The pass of top-k that collects: memory-bound while elements are skipped, so what is done for
// those that are not has to be without branches that cannot be foreseen.
#include <algorithm>

#include "kernels/cpu_saturate.h"
#include "kernels/cpu_select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_pass_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/select-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Elements that are looked at together; a vector, or several narrow ones.
constexpr std::size_t kUnit = 16;

// Hits of a chunk: with fewer, whole groups are skipped by a branch that is mostly right; with
// more, no unit is skipped; between, the units with hits are noted first.
constexpr std::size_t kFewHits = kChunk / 512;
constexpr std::size_t kManyHits = kChunk / 24;

// A chunk of x and, with feedback, of the residual, which becomes their sum.
struct Chunk {
  const float* x;
  float* residual;
  std::uint32_t index;
  std::size_t n;        // a multiple of kGroup
  std::size_t padding;  // zeros among the last of them
  Bounds bounds;
};

struct Found {
  Writer writer;
  VI ties = hn::Zero(kI32);  // by lane
};

// The largest magnitudes of each unit of a group.
struct Tops {
  HWY_INLINE Tops() {}  // an implicit one would not be compiled for the instruction set
  VI at[kGroup / kUnit];

  HWY_INLINE VI All() const { return hn::Max(hn::Max(at[0], at[1]), hn::Max(at[2], at[3])); }
};
static_assert(kGroup / kUnit == 4);

// residual = residual + x, saturating, for a group.
HWY_INLINE Tops AddGroup(const float* HWY_RESTRICT x, float* HWY_RESTRICT residual) {
  VF p[kGroupVectors];
  Tops tops;
  Unroll<kGroup / kUnit>([&](auto u) HWY_ATTR { tops.at[u] = hn::Zero(kI32); });
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    constexpr std::size_t kAt = v * kLanes;
    p[v] = hn::LoadU(kF32, residual + kAt) + hn::LoadU(kF32, x + kAt);
    tops.at[kAt / kUnit] = hn::Max(tops.at[kAt / kUnit], MagnitudeOf(p[v]));
  });
  if (HWY_UNLIKELY(AnyAbove(tops.All(), std::int32_t{kF32Infinity - 1}))) {
    for (std::size_t i = 0; i < kGroup; ++i) residual[i] = SaturatedSum(residual[i], x[i]);
    Unroll<kGroup / kUnit>([&](auto u)
                               HWY_ATTR { tops.at[u] = TopOf<kUnit>(residual + u * kUnit); });
  } else {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR { hn::StoreU(p[v], kF32, residual + v * kLanes); });
  }
  return tops;
}

template <bool kFeedback>
HWY_INLINE Tops ReadGroup(Chunk chunk, std::size_t i) {
  if constexpr (kFeedback) return AddGroup(chunk.x + i, chunk.residual + i);
  Tops tops;
  Unroll<kGroup / kUnit>([&](auto u)
                             HWY_ATTR { tops.at[u] = TopOf<kUnit>(chunk.x + i + u * kUnit); });
  return tops;
}

// Counts by lane: a lane that is true is -1.
HWY_INLINE VI CountIn(VI counts, MI mask) { return counts - hn::VecFromMask(kI32, mask); }
HWY_INLINE std::size_t SumOf(VI counts) {
  return static_cast<std::size_t>(hn::GetLane(hn::SumOfLanes(kI32, counts)));
}

// Writes those of a unit that are above the lower bound. With feedback, and while all fit in the
// list, clears those above the guess.
template <bool kFeedback>
HWY_INLINE void PutUnit(Chunk chunk, std::size_t i, std::int32_t clear_above, Found& found) {
  for (std::size_t end = i + kUnit; i < end; i += kLanes) {
    const VF x = hn::LoadU(kF32, (kFeedback ? chunk.residual : chunk.x) + i);
    const VI m = MagnitudeOf(x);
    found.ties = CountIn(found.ties, hn::Eq(m, hn::Set(kI32, chunk.bounds.lower)));
    found.writer.Put(IndicesFrom(chunk.index + static_cast<std::uint32_t>(i)), x,
                     hn::Gt(m, hn::Set(kI32, chunk.bounds.lower)));
    if constexpr (kFeedback) {
      const auto above = hn::RebindMask(kF32, hn::Gt(m, hn::Set(kI32, clear_above)));
      hn::StoreU(hn::IfThenZeroElse(above, x), kF32, chunk.residual + i);
    }
  }
}

template <bool kFeedback>
HWY_INLINE Found PutGroups(Chunk chunk, bool skip, std::int32_t clear_above, Found found) {
  for (std::size_t i = 0; i < chunk.n; i += kGroup) {
    const Tops tops = ReadGroup<kFeedback>(chunk, i);
    if (skip && !AnyAbove(tops.All(), chunk.bounds.lower - 1)) continue;
    for (std::size_t u = 0; u < kGroup; u += kUnit)
      PutUnit<kFeedback>(chunk, i + u, clear_above, found);
  }
  return found;
}

template <bool kFeedback>
HWY_INLINE Found PutNoted(Chunk chunk, std::int32_t clear_above, Found found) {
  std::uint16_t noted[kChunk / kUnit + 1];
  std::size_t count = 0;
  for (std::size_t i = 0; i < chunk.n; i += kGroup) {
    const Tops tops = ReadGroup<kFeedback>(chunk, i);
    Unroll<kGroup / kUnit>([&](auto u) HWY_ATTR {
      noted[count] = static_cast<std::uint16_t>(i + u * kUnit);
      count += AnyAbove(tops.at[u], chunk.bounds.lower - 1) ? 1 : 0;
    });
  }
  for (std::size_t j = 0; j < count; ++j) PutUnit<kFeedback>(chunk, noted[j], clear_above, found);
  return found;
}

// `hits` of the chunk before, to guess by.
template <bool kFeedback>
HWY_INLINE Found PutChunk(Chunk chunk, std::size_t hits, std::int32_t clear_above, Found found) {
  if (hits < kFewHits) return PutGroups<kFeedback>(chunk, true, clear_above, found);
  if (hits < kManyHits) return PutNoted<kFeedback>(chunk, clear_above, found);
  return PutGroups<kFeedback>(chunk, false, clear_above, found);
}

// Appends the magnitudes within (lower, upper] to the band; counts those above and, unless they are
// from the list, those equal to the lower bound. Reads whole vectors.
template <bool kTies>
HWY_INLINE void AppendToBand(const float* HWY_RESTRICT at, std::size_t n, Bounds bounds,
                             Stripe& stripe) {
  if (HWY_UNLIKELY(stripe.BandOverflowed())) return;
  const VI lower = hn::Set(kI32, bounds.lower);
  const VI upper = hn::Set(kI32, bounds.upper);
  std::int32_t* HWY_RESTRICT band = stripe.band;
  std::size_t banded = stripe.banded;
  VI above_count = hn::Zero(kI32);
  VI ties = hn::Zero(kI32);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const VI m = MagnitudeAt(at + i);
    const MI valid = hn::FirstN(kI32, n - i);
    const MI above = hn::And(valid, hn::Gt(m, upper));
    const LanePacker pack(hn::And(valid, hn::AndNot(above, hn::Gt(m, lower))));
    hn::StoreU(pack(m), kI32, band + banded);
    banded += pack.count();
    above_count = CountIn(above_count, above);
    if constexpr (kTies) ties = CountIn(ties, hn::And(valid, hn::Eq(m, lower)));
  }
  stripe.banded = banded;
  stripe.above += SumOf(above_count);
  stripe.ties += SumOf(ties);
}

// `hits` are those of the last chunk.
template <bool kFeedback>
HWY_INLINE void CollectList(const Chunk& chunk, bool band, std::size_t& hits, SinkWriter& list,
                            Stripe& stripe) {
  const std::int32_t clear_above = list.sink().HasRoom() ? chunk.bounds.guess : kLargestMagnitude;
  Found found = PutChunk<kFeedback>(chunk, hits, clear_above, {list.Next()});
  stripe.ties += SumOf(found.ties);
  if (chunk.bounds.lower == 0) stripe.ties -= chunk.padding;
  if (chunk.bounds.lower < 0) found.writer.count -= chunk.padding;
  if (band) AppendToBand<false>(found.writer.values, found.writer.count, chunk.bounds, stripe);
  hits = found.writer.count;
  list.Take(found.writer.count);
}

template <bool kFeedback>
HWY_INLINE void CollectBand(const Chunk& chunk, Stripe& stripe) {
  if constexpr (kFeedback)
    for (std::size_t i = 0; i < chunk.n; i += kGroup) AddGroup(chunk.x + i, chunk.residual + i);
  AppendToBand<true>(kFeedback ? chunk.residual : chunk.x, chunk.n, chunk.bounds, stripe);
  if (chunk.bounds.lower == 0) stripe.ties -= chunk.padding;
}

// Calls collect(chunk) for the stripe.
template <bool kFeedback, class CollectChunk>
HWY_INLINE void ForChunks(const float* x, float* residual, Bounds bounds, const Stripe& stripe,
                          const CollectChunk& collect) {
  std::size_t i = stripe.begin;
  while (stripe.end - i >= kGroup) {
    const std::size_t n = std::min(kChunk, (stripe.end - i) / kGroup * kGroup);
    collect(Chunk{x + i, kFeedback ? residual + i : nullptr, static_cast<std::uint32_t>(i), n, 0,
                  bounds});
    i += n;
  }
  const std::size_t rest = stripe.end - i;
  if (rest == 0) return;
  const Padded<float> values(x + i, rest);
  Padded<float> sums;
  if constexpr (kFeedback) sums = Padded<float>(residual + i, rest);
  collect(Chunk{values.at, sums.at, static_cast<std::uint32_t>(i), kGroup, kGroup - rest, bounds});
  if constexpr (kFeedback) sums.CopyTo(residual + i, rest);
}

template <bool kFeedback>
void CollectWhat(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe) {
  if (what == Collect::kBand) {
    ForChunks<kFeedback>(x, residual, bounds, stripe, [&](const Chunk& chunk) HWY_ATTR {
      CollectBand<kFeedback>(chunk, stripe);
    });
    return;
  }
  SinkWriter list(stripe.list);
  std::size_t hits = 0;
  ForChunks<kFeedback>(x, residual, bounds, stripe, [&](const Chunk& chunk) HWY_ATTR {
    CollectList<kFeedback>(chunk, what == Collect::kListAndBand, hits, list, stripe);
  });
}

void CollectIn(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe) {
  return residual != nullptr ? CollectWhat<true>(x, residual, bounds, what, stripe)
                             : CollectWhat<false>(x, residual, bounds, what, stripe);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

HWY_EXPORT(CollectIn);

void CollectStripe(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe) {
  HWY_DYNAMIC_DISPATCH(CollectIn)(x, residual, bounds, what, stripe);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
