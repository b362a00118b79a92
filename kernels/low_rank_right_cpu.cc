#include <algorithm>
#include <cmath>

#include "kernels/blocks.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_low_rank.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/low_rank.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/low_rank_right_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Rows whose planes of q come from the second cache once; vectors of sums that stay in registers;
// planes that share loads of m; and planes of one sweep over m.
constexpr std::size_t kMostRows = 2;
constexpr std::size_t kSums = kLanes == 16 ? 16 : 8;
constexpr std::size_t kSlice = 4;
constexpr std::size_t kSweep = 8;

struct Lanes {
  HWY_ALIGN_MAX float at[kMostRows][kSweep][kGroup];
};

// lanes[first + r] += m * q[r] for some groups of columns of a row. Sums stay in registers.
template <std::size_t kRank>
HWY_INLINE void AddProducts(const float* HWY_RESTRICT m, Planes q, std::size_t groups,
                            float (*HWY_RESTRICT lanes)[kGroup]) {
  constexpr std::size_t kVectors = std::min(kGroupVectors, kSums / kRank);
  for (std::size_t at = 0; at < kGroup; at += kVectors * kLanes) {
    VF sums[kRank * kVectors];
    Unroll<kRank * kVectors>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
      sums[k] = hn::Load(kF32, lanes[k / kVectors] + at + k % kVectors * kLanes);
    });
    for (std::size_t j = at; j < groups * kGroup; j += kGroup) {
      VF entry[kVectors];
      Unroll<kVectors>([&](auto v) HWY_ATTR { entry[v] = hn::LoadU(kF32, m + j + v * kLanes); });
      Unroll<kRank * kVectors>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
        const float* plane = q.at + k / kVectors * q.stride + j;
        sums[k] = sums[k] + entry[k % kVectors] * hn::LoadU(kF32, plane + k % kVectors * kLanes);
      });
    }
    Unroll<kRank * kVectors>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
      hn::Store(sums[k], kF32, lanes[k / kVectors] + at + k % kVectors * kLanes);
    });
  }
}

HWY_INLINE void AddSlices(const float* m, Planes q, std::size_t rank, std::size_t groups,
                          float (*lanes)[kGroup]) {
  std::size_t r = 0;
  const auto slice = [&] { return Planes{q.at + r * q.stride, q.stride}; };
  for (; rank - r >= kSlice; r += kSlice) AddProducts<kSlice>(m, slice(), groups, lanes + r);
  if (rank - r >= 2) AddProducts<2>(m, slice(), groups, lanes + r), r += 2;
  if (rank - r >= 1) AddProducts<1>(m, slice(), groups, lanes + r);
}

// AddSaturatedGroup, but what is seldom stays in line: a call would drive the sums of the loop
// around it out of their registers.
HWY_INLINE void GrowGroup(const float* HWY_RESTRICT x, float* HWY_RESTRICT m) {
  VF sum[kGroupVectors];
  if (HWY_UNLIKELY(!SumGroup(x, m, sum))) {
    for (std::size_t j = 0; j < kGroup; ++j) m[j] = SaturatedSum(m[j], x[j]);
    return;
  }
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR { hn::StoreU(sum[v], kF32, m + v * kLanes); });
}

HWY_INLINE float TreeSumOf(const float* HWY_RESTRICT lanes) {
  VF x[kGroupVectors];
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR { x[v] = hn::Load(kF32, lanes + v * kLanes); });
  return TreeSum(x);
}

// A sweep of a block of rows: at most kSweep planes, all columns of the part.
template <std::size_t kRows>
struct Sweep {
  const float* x;
  float* m;
  std::size_t stride;
  Planes q;
  std::size_t rank;

  // Columns [begin, end), less than a group, padded with zeros, whose products change no lane.
  void AddRest(std::size_t begin, std::size_t end, Lanes& lanes) const {
    for (std::size_t i = 0; i < kRows; ++i) {
      float* row = m + i * stride + begin;
      Padded<float> rest(row, end - begin);
      if (x != nullptr) {
        GrowGroup(Padded<float>(x + i * stride + begin, end - begin).at, rest.at);
        rest.CopyTo(row, end - begin);
      }
      AddSlices(rest.at, {q.at + begin, q.stride}, rank, 1, lanes.at[i]);
    }
  }

  // sums[i * sums_stride + r] = LaneSum of the run of columns [begin, end).
  void Run(std::size_t begin, std::size_t end, RowsAhead& x_ahead, RowsAhead& m_ahead, float* sums,
           std::size_t sums_stride) const {
    Lanes lanes;
    for (std::size_t i = 0; i < kRows; ++i)
      std::memset(lanes.at[i], 0, rank * sizeof(lanes.at[i][0]));
    // Longer strips keep sums in registers for longer, but come from memory in larger gulps.
    const std::size_t strip = rank > 1 ? 2 : 1;
    std::size_t j = begin;
    while (end - j >= kGroup) {
      const std::size_t groups = std::min(strip, (end - j) / kGroup);
      for (std::size_t i = 0; i < kRows; ++i) {
        float* row = m + i * stride + j;
        m_ahead.Fetch(groups);
        if (x != nullptr) {
          x_ahead.Fetch(groups);
          for (std::size_t k = 0; k < groups * kGroup; k += kGroup)
            GrowGroup(x + i * stride + j + k, row + k);
        }
        AddSlices(row, {q.at + j, q.stride}, rank, groups, lanes.at[i]);
      }
      j += groups * kGroup;
    }
    if (j < end) {
      m_ahead.Fetch(kRows);
      if (x != nullptr) x_ahead.Fetch(kRows);
      AddRest(j, end, lanes);
    }
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t r = 0; r < rank; ++r) sums[i * sums_stride + r] = TreeSumOf(lanes.at[i][r]);
  }
};

template <std::size_t kRows>
void SweepRows(const RightPart& part, std::size_t row, std::size_t first, std::size_t rank) {
  const std::size_t at = row * part.m_stride;
  const Sweep<kRows> sweep = {.x = part.x != nullptr && first == 0 ? part.x + at : nullptr,
                              .m = part.m + at,
                              .stride = part.m_stride,
                              .q = {part.q.at + first * part.q.stride, part.q.stride},
                              .rank = rank};
  const std::size_t next = std::min(kRows, part.rows - row - kRows) * part.m_stride;
  RowsAhead m_ahead(sweep.m + next, part.m_stride, part.cols);
  RowsAhead x_ahead(part.x != nullptr ? part.x + at + next : nullptr, part.m_stride, part.cols);
  float* sums = part.sums + row * part.sums_stride + first;
  for (std::size_t j = 0; j < part.cols; j += kSumBlock, sums += part.rank)
    sweep.Run(j, std::min(j + kSumBlock, part.cols), x_ahead, m_ahead, sums, part.sums_stride);
}

template <std::size_t kRows>
void BlockSums(const RightPart& part, std::size_t row) {
  std::size_t first = 0;
  do {
    const std::size_t rank = std::min(kSweep, part.rank - first);
    SweepRows<kRows>(part, row, first, rank);
    first += rank;
  } while (first < part.rank);
}

template <std::size_t kRows>
void PartSumsBy(const RightPart& part) {
  std::size_t row = 0;
  for (; part.rows - row >= kRows; row += kRows) BlockSums<kRows>(part, row);
  for (; row < part.rows; ++row) BlockSums<1>(part, row);
}

void PartSums(const RightPart& part) { PartSumsBy<kMostRows>(part); }

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(PartSums);

// sums = those of each row's runs, rows x runs x rank. Tasks are blocks of rows, of so many columns
// that two blocks stay in the second cache.
void AllRunSums(const Backend& backend, const float* x, float* m, std::size_t rows,
                std::size_t cols, Planes q, std::size_t rank, float* sums) {
  constexpr std::size_t kRuns = 2;
  const auto part_sums = HWY_DYNAMIC_DISPATCH(PartSums);
  const std::size_t runs = BlockCount(cols, kSumBlock);
  const std::size_t parts = BlockCount(runs, kRuns);
  const std::size_t step = 4 * kTaskElements / std::min(cols, kRuns * kSumBlock);
  const std::size_t blocks = BlockCount(rows, step);
  backend.executor->ParallelFor(blocks * parts, [&](std::size_t task) {
    const std::size_t row = task / parts * step;
    const std::size_t run = task % parts * kRuns;
    const std::size_t col = run * kSumBlock;
    const std::size_t at = row * cols + col;
    part_sums({.x = x == nullptr ? nullptr : x + at,
               .m = m + at,
               .m_stride = cols,
               .rows = std::min(step, rows - row),
               .cols = std::min(kRuns * kSumBlock, cols - col),
               .q = {q.at + col, q.stride},
               .rank = rank,
               .sums = sums + (row * runs + run) * rank,
               .sums_stride = runs * rank});
  });
}

double WideRowSum(const float* row, const float* q, std::size_t cols, std::size_t rank) {
  return LaneSum<double>(0, cols, [&](std::size_t j) {
    return static_cast<double>(row[j]) * static_cast<double>(q[j * rank]);
  });
}

void Right(const Backend& backend, Scratch& scratch, const float* x, float* m, std::size_t rows,
           std::size_t cols, In q, std::size_t rank, Out p) {
  if (rows * cols == 0) return;
  ScratchScope scope(scratch);
  const Planes planes = ToPlanes(backend, scope, q, cols, rank);
  const std::size_t runs = BlockCount(cols, kSumBlock);
  float* sums = runs == 1 ? p.data() : scope.Take<float>(p.size() * runs).data();
  AllRunSums(backend, x, m, rows, cols, planes, rank, sums);
  ForItems(backend, rows, runs * rank, [&](std::size_t begin, std::size_t end) {
    const Out part = p.subspan(begin * rank, (end - begin) * rank);
    for (std::size_t k = 0; runs > 1 && k < part.size(); ++k) {
      const float* run_sums = sums + (begin + k / rank) * runs * rank + k % rank;
      part[k] = 0;
      for (std::size_t run = 0; run < runs; ++run) part[k] += run_sums[run * rank];
    }
    if (AllFinite(part)) return;
    for (std::size_t k = 0; k < part.size(); ++k) {
      if (std::isfinite(part[k])) continue;
      const float* row = m + (begin + k / rank) * cols;
      part[k] = SaturateToFloat(WideRowSum(row, q.data() + k % rank, cols, rank));
    }
  });
}

}  // namespace

void MultiplyRight(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                   std::size_t cols, In q, std::size_t rank, Out p) {
  // Not written to without x.
  Right(backend, scratch, nullptr, const_cast<float*>(m.data()), rows, cols, q, rank, p);
}

void MultiplyRightFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                           std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p) {
  Right(backend, scratch, x.data(), residual.data(), rows, cols, q, rank, p);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
