#include <algorithm>
#include <cstdint>

#include "kernels/cpu_low_rank.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/low_rank.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/low_rank_outer_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Rows that go along together, so that planes of q come from the second cache once for all of them.
constexpr std::size_t kBlockRows = 4;

// What a group of entries is for.
template <bool kSetEntries, bool kStreamEntries, bool kAddEntries>
struct OuterUse {
  static constexpr bool kSet = kSetEntries;
  static constexpr bool kStream = kStreamEntries;
  static constexpr bool kAdd = kAddEntries;
};

// Entries at a time: as many vectors of them, and of sums, as every instruction set has registers.
constexpr std::size_t kVectors = std::min<std::size_t>(kGroupVectors, 4);
constexpr std::size_t kStep = kVectors * kLanes;

// A step with entries that are not finite, or that make a sum that is not, one by one.
template <class Use>
HWY_NOINLINE void OuterOneByOne(const float* p, Planes q, std::size_t rank, float weight,
                                float* set, float* add) {
  for (std::size_t j = 0; j < kStep; ++j) {
    const float entry = OuterEntry(p, q, j, rank);
    if constexpr (Use::kSet) set[j] = entry;
    if constexpr (Use::kAdd) add[j] = SaturatedSum(add[j], weight * entry);
  }
}

// kRank 0: a rank that only `rank` knows.
template <class Use, std::size_t kRank>
HWY_INLINE void OuterStep(const float* HWY_RESTRICT p, Planes q, std::size_t rank, float weight,
                          float* HWY_RESTRICT set, float* HWY_RESTRICT add) {
  VF entry[kVectors];
  Unroll<kVectors>([&](auto v) HWY_ATTR { entry[v] = hn::Zero(kF32); });
  for (std::size_t r = 0; r < (kRank > 0 ? kRank : rank); ++r) {
    const VF factor = hn::Set(kF32, p[r]);
    Unroll<kVectors>([&](auto v) HWY_ATTR {
      entry[v] = entry[v] + factor * hn::LoadU(kF32, q.at + r * q.stride + v * kLanes);
    });
  }
  VU top = hn::Zero(kU32);
  VF sum[kVectors];
  Unroll<kVectors>([&](auto v) HWY_ATTR {
    if constexpr (Use::kAdd) {
      sum[v] = hn::LoadU(kF32, add + v * kLanes) + hn::Set(kF32, weight) * entry[v];
      top = MaxMagnitude(top, Magnitude(sum[v]));
    } else {
      top = MaxMagnitude(top, Magnitude(entry[v]));
    }
  });
  if (HWY_UNLIKELY(AnyAtLeast(top, kF32Infinity)))
    return OuterOneByOne<Use>(p, q, rank, weight, set, add);
  Unroll<kVectors>([&](auto v) HWY_ATTR {
    if constexpr (Use::kSet) StoreAligned<Use::kStream>(entry[v], kF32, set + v * kLanes);
    if constexpr (Use::kAdd) hn::StoreU(sum[v], kF32, add + v * kLanes);
  });
}

template <class Use, std::size_t kRank>
HWY_INLINE void OuterGroup(const float* p, Planes q, std::size_t rank, float weight, float* set,
                           float* add) {
  for (std::size_t at = 0; at < kGroup; at += kStep)
    OuterStep<Use, kRank>(p, {q.at + at, q.stride}, rank, weight, Use::kSet ? set + at : nullptr,
                          Use::kAdd ? add + at : nullptr);
}

template <class Use, std::size_t kRank>
HWY_INLINE void OuterPart(const float* p, Planes q, std::size_t rank, float weight,
                          std::size_t count, float* set, float* add) {
  Padded<float> to_set, to_add;
  if constexpr (Use::kAdd) to_add = Padded<float>(add, count);
  OuterGroup<OuterUse<Use::kSet, false, Use::kAdd>, kRank>(p, q, rank, weight, to_set.at,
                                                           to_add.at);
  if constexpr (Use::kSet) to_set.CopyTo(set, count);
  if constexpr (Use::kAdd) to_add.CopyTo(add, count);
}

// The group of row `row` that begins at column j, and a part of one.
template <class Use, std::size_t kRank>
HWY_INLINE void GroupAt(const OuterRows& all, std::size_t row, std::size_t j) {
  const std::size_t at = row * all.cols + j;
  OuterGroup<Use, kRank>(all.p + row * all.rank, {all.q.at + j, all.q.stride}, all.rank, all.weight,
                         Use::kSet ? all.set + at : nullptr, Use::kAdd ? all.add + at : nullptr);
}

template <class Use, std::size_t kRank>
void PartAt(const OuterRows& all, std::size_t row, std::size_t j, std::size_t count) {
  const std::size_t at = row * all.cols + j;
  OuterPart<Use, kRank>(all.p + row * all.rank, {all.q.at + j, all.q.stride}, all.rank, all.weight,
                        count, Use::kSet ? all.set + at : nullptr,
                        Use::kAdd ? all.add + at : nullptr);
}

template <class Use, std::size_t kRank, std::size_t kRows>
HWY_INLINE void OuterBlock(const OuterRows& all, std::size_t row) {
  std::size_t at[kRows] = {};  // columns done, of each row: groups begin at its own lines
  std::size_t groups = all.cols / kGroup;
  for (std::size_t i = 0; i < kRows && Use::kStream; ++i) {
    at[i] = BeforeLine(all.set + (row + i) * all.cols, all.cols);
    if (at[i] > 0) PartAt<Use, kRank>(all, row + i, 0, at[i]);
    groups = std::min(groups, (all.cols - at[i]) / kGroup);
  }
  const std::size_t next = row + std::min(2 * kRows, all.rows - row) - kRows;
  RowsAhead ahead(all.add + (Use::kAdd ? next * all.cols : 0), all.cols, all.cols);
  for (; groups > 0; --groups) {
    if (Use::kAdd) ahead.Fetch(kRows);
    for (std::size_t i = 0; i < kRows; ++i, at[i - 1] += kGroup)
      GroupAt<Use, kRank>(all, row + i, at[i]);
  }
  if (Use::kAdd && all.cols % kGroup > 0) ahead.Fetch(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    for (; all.cols - at[i] >= kGroup; at[i] += kGroup) GroupAt<Use, kRank>(all, row + i, at[i]);
    if (at[i] < all.cols) PartAt<Use, kRank>(all, row + i, at[i], all.cols - at[i]);
  }
}

template <class Use, std::size_t kRank>
void OuterBlocks(const OuterRows& all) {
  std::size_t row = 0;
  for (; all.rows - row >= kBlockRows; row += kBlockRows)
    OuterBlock<Use, kRank, kBlockRows>(all, row);
  for (; row < all.rows; ++row) OuterBlock<Use, kRank, 1>(all, row);
  if (Use::kStream) FlushStream();
}

template <class Use>
void OuterOfRank(const OuterRows& rows) {
  switch (rows.rank) {
    case 1: return OuterBlocks<Use, 1>(rows);
    case 2: return OuterBlocks<Use, 2>(rows);
    case 4: return OuterBlocks<Use, 4>(rows);
    default: return OuterBlocks<Use, 0>(rows);
  }
}

void OuterAll(const OuterRows& rows) {
  if (rows.set == nullptr) return OuterOfRank<OuterUse<false, false, true>>(rows);
  if (rows.add == nullptr)
    return rows.stream ? OuterOfRank<OuterUse<true, true, false>>(rows)
                       : OuterOfRank<OuterUse<true, false, false>>(rows);
  return rows.stream ? OuterOfRank<OuterUse<true, true, true>>(rows)
                     : OuterOfRank<OuterUse<true, false, true>>(rows);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(OuterAll);

void AllRows(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
             std::size_t cols, std::size_t rank, float* set, float weight, float* add) {
  if (rows * cols == 0) return;
  ScratchScope scope(scratch);
  const Planes planes = ToPlanes(backend, scope, q, cols, rank);
  const auto outer = HWY_DYNAMIC_DISPATCH(OuterAll);
  // Where rows are short, only lines that no row's end cuts pay.
  const bool stream =
      OutgrowsCaches(rows * cols * sizeof(float)) &&
      (cols >= 512 || (cols % 16 == 0 && reinterpret_cast<std::uintptr_t>(set) % 64 == 0));
  const std::size_t step = std::max<std::size_t>(16, 4 * kTaskElements / cols);
  ForRanges(backend, rows, step, [&](std::size_t begin, std::size_t end) {
    outer({.p = p.data() + begin * rank,
           .q = planes,
           .rank = rank,
           .rows = end - begin,
           .cols = cols,
           .set = set == nullptr ? nullptr : set + begin * cols,
           .add = add == nullptr ? nullptr : add + begin * cols,
           .weight = weight,
           .stream = stream});
  });
}

}  // namespace

void AddOuter(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
              std::size_t cols, std::size_t rank, float weight, Out m) {
  AllRows(backend, scratch, p, q, rows, cols, rank, nullptr, weight, m.data());
}

void Outer(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows, std::size_t cols,
           std::size_t rank, Out m) {
  AllRows(backend, scratch, p, q, rows, cols, rank, m.data(), 0, nullptr);
}

void OuterFeedback(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
                   std::size_t cols, std::size_t rank, Out average, Out residual) {
  AllRows(backend, scratch, p, q, rows, cols, rank, average.data(), -1.0F, residual.data());
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
