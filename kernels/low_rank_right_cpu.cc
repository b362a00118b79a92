#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/cpu_half.h"
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

#ifndef SLIMGRAD_KERNELS_LOW_RANK_RIGHT_CPU_CC_
#define SLIMGRAD_KERNELS_LOW_RANK_RIGHT_CPU_CC_
namespace slimgrad::kernels::cpu {

// Rows within one run of columns: at most kSumBlock, the first of which is column 0 of `q`.
struct RowsOfRun {
  const float* x;  // what m is to grow by first; null for nothing
  float* m;        // read only without x
  std::size_t m_stride;
  std::size_t rows;
  std::size_t cols;
  Planes q;
  std::size_t rank;
  float* sums;  // of row i and plane r: at i * sums_stride + r
  std::size_t sums_stride;
};

}  // namespace slimgrad::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// What shares loads: these rows share those of q, kSlice planes those of m, and up to kSweep
// planes one sweep over m.
inline constexpr std::size_t kBlockRows = 4;
inline constexpr std::size_t kSlice = 4;
inline constexpr std::size_t kSweep = 8;

// Columns that a block of rows goes along before the next slice: they stay in the first cache.
inline constexpr std::size_t kStrip = 8 * kGroup;

struct Lanes {
  HWY_ALIGN_MAX float at[kBlockRows][kSweep][kGroup];
};

// lanes[i][r] += m[i] * q[r] for `groups` groups of columns. Sums stay in registers meanwhile.
template <std::size_t kRows, std::size_t kRank>
HWY_INLINE void AddProducts(const float* HWY_RESTRICT m, std::size_t m_stride, Planes q,
                            std::size_t groups, std::size_t first, Lanes& lanes) {
  for (std::size_t at = 0; at < kGroup; at += kLanes) {
    VF sums[kRows * kRank];
    Unroll<kRows * kRank>([&](auto k) HWY_ATTR {
      sums[k] = hn::Load(kF32, lanes.at[k / kRank][first + k % kRank] + at);
    });
    for (std::size_t j = at; j < groups * kGroup; j += kGroup) {
      VF factor[kRank];
      Unroll<kRank>([&](auto r) HWY_ATTR { factor[r] = hn::LoadU(kF32, q.at + r * q.stride + j); });
      Unroll<kRows>([&](auto i) HWY_ATTR {
        const VF entry = hn::LoadU(kF32, m + i * m_stride + j);
        if (first == 0) hwy::Prefetch(m + i * m_stride + j + kStrip);
        Unroll<kRank>([&](auto r) HWY_ATTR {
          sums[i * kRank + r] = sums[i * kRank + r] + entry * factor[r];
        });
      });
    }
    Unroll<kRows * kRank>([&](auto k) HWY_ATTR {
      hn::Store(sums[k], kF32, lanes.at[k / kRank][first + k % kRank] + at);
    });
  }
}

template <std::size_t kRows>
HWY_INLINE void AddSlices(const float* m, std::size_t m_stride, Planes q, std::size_t rank,
                          std::size_t groups, Lanes& lanes) {
  std::size_t r = 0;
  const auto slice = [&] { return Planes{q.at + r * q.stride, q.stride}; };
  for (; rank - r >= kSlice; r += kSlice)
    AddProducts<kRows, kSlice>(m, m_stride, slice(), groups, r, lanes);
  if (rank - r >= 2) AddProducts<kRows, 2>(m, m_stride, slice(), groups, r, lanes), r += 2;
  if (rank - r >= 1) AddProducts<kRows, 1>(m, m_stride, slice(), groups, r, lanes);
}

// m = m + x, saturating.
HWY_INLINE void Grow(const float* HWY_RESTRICT x, std::size_t count, float* HWY_RESTRICT m) {
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup) {
    VF sums[kGroupVectors];
    VU top = hn::Zero(kU32);
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      sums[v] = hn::LoadU(kF32, m + i + v * kLanes) + hn::LoadU(kF32, x + i + v * kLanes);
      top = MaxMagnitude(top, Magnitude(sums[v]));
    });
    if (HWY_UNLIKELY(AnyAtLeast(top, kF32Infinity))) {
      for (std::size_t j = i; j < i + kGroup; ++j) m[j] = SaturatedSum(m[j], x[j]);
      continue;
    }
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR { hn::StoreU(sums[v], kF32, m + i + v * kLanes); });
  }
  for (; i < count; ++i) m[i] = SaturatedSum(m[i], x[i]);
}

// The sum of 64 lanes in the tree of kernels/sums.h. Within a vector both halves are added to each
// other, which gives every lane pair's sum twice.
HWY_INLINE float TreeSum(const float* HWY_RESTRICT lanes) {
  VF x[kGroupVectors];
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR { x[v] = hn::Load(kF32, lanes + v * kLanes); });
  for (std::size_t half = kGroupVectors / 2; half > 0; half /= 2)
    for (std::size_t v = 0; v < half; ++v) x[v] = x[v] + x[v + half];
  VF sum = x[0];
  if constexpr (kLanes >= 16) sum = sum + hn::ConcatLowerUpper(kF32, sum, sum);
  if constexpr (kLanes >= 8) sum = sum + hn::SwapAdjacentBlocks(sum);
  sum = sum + hn::Shuffle1032(sum);
  sum = sum + hn::Shuffle2301(sum);
  return hn::GetLane(sum);
}

// One sweep of a block of rows: at most kSweep planes.
template <std::size_t kRows>
void SweepRows(const RowsOfRun& run, std::size_t row, std::size_t first, std::size_t rank) {
  Lanes lanes;
  for (std::size_t i = 0; i < kRows; ++i)
    std::memset(lanes.at[i], 0, rank * sizeof(lanes.at[i][0]));
  const std::size_t stride = run.m_stride;
  const float* x = run.x != nullptr && first == 0 ? run.x + row * stride : nullptr;
  float* m = run.m + row * stride;
  float* q = run.q.at + first * run.q.stride;
  for (std::size_t j = 0; j < run.cols; j += kStrip) {
    const std::size_t count = std::min(kStrip, run.cols - j);
    if (x != nullptr) {
      for (std::size_t i = 0; i < kRows; ++i) Grow(x + i * stride + j, count, m + i * stride + j);
    }
    AddSlices<kRows>(m + j, stride, {q + j, run.q.stride}, rank, count / kGroup, lanes);
  }
  if (const std::size_t rest = run.cols % kGroup; rest > 0) {
    // Padded with zeros, whose products change no lane.
    HWY_ALIGN_MAX float padded[kRows][kGroup] = {};
    const std::size_t j = run.cols - rest;
    for (std::size_t i = 0; i < kRows; ++i)
      std::memcpy(padded[i], m + i * stride + j, rest * sizeof(float));
    AddSlices<kRows>(padded[0], kGroup, {q + j, run.q.stride}, rank, 1, lanes);
  }
  float* sums = run.sums + row * run.sums_stride + first;
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t r = 0; r < rank; ++r) sums[i * run.sums_stride + r] = TreeSum(lanes.at[i][r]);
}

template <std::size_t kRows>
void BlockSums(const RowsOfRun& run, std::size_t row) {
  std::size_t first = 0;
  do {
    const std::size_t rank = std::min(kSweep, run.rank - first);
    SweepRows<kRows>(run, row, first, rank);
    first += rank;
  } while (first < run.rank);
}

void RunSums(const RowsOfRun& run) {
  std::size_t row = 0;
  for (; run.rows - row >= kBlockRows; row += kBlockRows) BlockSums<kBlockRows>(run, row);
  for (; row < run.rows; ++row) BlockSums<1>(run, row);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(RunSums);

std::size_t RunsOf(std::size_t cols) { return cols / kSumBlock + (cols % kSumBlock != 0); }

// sums = those of each row's runs, rows x runs x rank. Tasks are blocks of rows of one run.
void AllRunSums(const Backend& backend, const float* x, float* m, std::size_t rows,
                std::size_t cols, Planes q, std::size_t rank, float* sums) {
  const auto run_sums = HWY_DYNAMIC_DISPATCH(RunSums);
  const std::size_t runs = RunsOf(cols);
  const std::size_t step = kTaskElements / std::min(cols, kSumBlock);
  const std::size_t blocks = rows / step + (rows % step != 0);
  backend.executor->ParallelFor(blocks * runs, [&](std::size_t task) {
    const std::size_t row = task / runs * step;
    const std::size_t run = task % runs;
    const std::size_t col = run * kSumBlock;
    const std::size_t at = row * cols + col;
    run_sums({.x = x == nullptr ? nullptr : x + at,
              .m = m + at,
              .m_stride = cols,
              .rows = std::min(step, rows - row),
              .cols = std::min(kSumBlock, cols - col),
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
  const std::size_t runs = RunsOf(cols);
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
  CheckMatrix(m.size(), rows, cols);
  CheckFactors(rows, cols, p.size(), q.size(), rank);
  // Not written to without x.
  Right(backend, scratch, nullptr, const_cast<float*>(m.data()), rows, cols, q, rank, p);
}

void MultiplyRightFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                           std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p) {
  CheckMatrix(x.size(), rows, cols);
  CheckMatrix(residual.size(), rows, cols);
  CheckFactors(rows, cols, p.size(), q.size(), rank);
  Right(backend, scratch, x.data(), residual.data(), rows, cols, q, rank, p);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
