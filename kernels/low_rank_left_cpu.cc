#include <algorithm>
#include <cmath>

#include "kernels/cpu_low_rank.h"
#include "kernels/cpu_ranges.h"
#include "kernels/low_rank.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/low_rank_left_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Rows that are added while sums stay in registers, and how many sums of vectors that are.
constexpr std::size_t kBlockRows = 8;
constexpr std::size_t kSums = 8;

// sums[r] += the rows of m, a group of columns, each times its entry of column r of p.
template <std::size_t kRank>
HWY_INLINE void AddRows(const float* HWY_RESTRICT m, std::size_t m_stride, std::size_t rows,
                        const float* HWY_RESTRICT p, std::size_t rank, Planes to) {
  constexpr std::size_t kVectors = std::min(kGroupVectors, kSums / kRank);
  float* HWY_RESTRICT out = to.at;
  for (std::size_t at = 0; at < kGroup; at += kVectors * kLanes) {
    VF sums[kRank * kVectors];
    Unroll<kRank * kVectors>([&](auto k) HWY_ATTR {
      sums[k] = hn::LoadU(kF32, out + k / kVectors * to.stride + at + k % kVectors * kLanes);
    });
    for (std::size_t i = 0; i < rows; ++i) {
      VF entry[kVectors];
      Unroll<kVectors>(
          [&](auto v) HWY_ATTR { entry[v] = hn::LoadU(kF32, m + i * m_stride + at + v * kLanes); });
      Unroll<kRank>([&](auto r) HWY_ATTR {
        const VF factor = hn::Set(kF32, p[i * rank + r]);
        Unroll<kVectors>([&](auto v) HWY_ATTR {
          sums[r * kVectors + v] = sums[r * kVectors + v] + entry[v] * factor;
        });
      });
    }
    Unroll<kRank * kVectors>([&](auto k) HWY_ATTR {
      hn::StoreU(sums[k], kF32, out + k / kVectors * to.stride + at + k % kVectors * kLanes);
    });
  }
}

HWY_INLINE void AddRowsToAll(const float* m, std::size_t m_stride, std::size_t rows, const float* p,
                             std::size_t rank, Planes sums) {
  std::size_t r = 0;
  const auto slice = [&] { return Planes{sums.at + r * sums.stride, sums.stride}; };
  for (; rank - r >= 4; r += 4) AddRows<4>(m, m_stride, rows, p + r, rank, slice());
  if (rank - r >= 2) AddRows<2>(m, m_stride, rows, p + r, rank, slice()), r += 2;
  if (rank - r >= 1) AddRows<1>(m, m_stride, rows, p + r, rank, slice());
}

// The columns of a matrix that has less than a group of them.
void NarrowSums(const ColumnTile& tile) {
  HWY_ALIGN_MAX float padded[kBlockRows][kGroup] = {};
  for (std::size_t row = 0; row < tile.rows; row += kBlockRows) {
    const std::size_t rows = std::min(kBlockRows, tile.rows - row);
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(padded[i], tile.m + (row + i) * tile.m_stride, tile.cols * sizeof(float));
    AddRowsToAll(padded[0], kGroup, rows, tile.p + row * tile.rank, tile.rank, tile.sums);
  }
}

// What is left of a group at the matrix's end is summed as its last whole group of columns, some of
// which are summed twice.
void WideSums(const ColumnTile& tile) {
  for (std::size_t row = 0; row < tile.rows; row += kBlockRows) {
    const std::size_t rows = std::min(kBlockRows, tile.rows - row);
    const float* m = tile.m + row * tile.m_stride;
    const float* p = tile.p + row * tile.rank;
    const auto add = [&](std::ptrdiff_t col, std::size_t sum) {
      AddRowsToAll(m + col, tile.m_stride, rows, p, tile.rank,
                   {tile.sums.at + sum, tile.sums.stride});
    };
    const std::size_t next = std::min(rows, tile.rows - row - rows);
    RowsAhead ahead(m + next * tile.m_stride, tile.m_stride, tile.cols);
    std::size_t j = 0;
    for (; tile.cols - j >= kGroup; j += kGroup) {
      ahead.Fetch(rows);
      add(static_cast<std::ptrdiff_t>(j), j);
    }
    if (j < tile.cols) {
      ahead.Fetch(rows);
      add(static_cast<std::ptrdiff_t>(tile.cols) - static_cast<std::ptrdiff_t>(kGroup), j);
    }
  }
}

// Returns where the sums of the columns after the last whole group are.
std::size_t TileSums(const ColumnTile& tile) {
  const std::size_t rest = tile.cols % kGroup;
  const std::size_t whole = tile.cols - rest;
  for (std::size_t r = 0; r < tile.rank; ++r)
    std::fill_n(tile.sums.at + r * tile.sums.stride, rest == 0 ? whole : whole + kGroup, 0.0F);
  if (tile.before + tile.cols < kGroup) {
    NarrowSums(tile);
    return 0;
  }
  WideSums(tile);
  return whole + kGroup - rest;
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(TileSums);

// Columns a task, in whole groups: their sums are the same however columns are cut. Few tasks,
// since long rows are read faster; but not more columns than leave their sums in the second cache.
std::size_t TileCols(const Backend& backend, std::size_t cols) {
  constexpr std::size_t kMost = 8192;
  const auto threads = static_cast<std::size_t>(backend.executor->concurrency());
  return std::min(kMost, (cols / threads / kPlaneGroup + 1) * kPlaneGroup);
}

}  // namespace

void MultiplyLeft(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                  std::size_t cols, In p, std::size_t rank, Out q) {
  ScratchScope scope(scratch);
  const std::size_t stride = PlaneStride(cols);
  float* sums = scope.Take<float>(stride * rank).data();
  const auto tile_sums = HWY_DYNAMIC_DISPATCH(TileSums);
  ForRanges(backend, cols, TileCols(backend, cols), [&](std::size_t begin, std::size_t end) {
    const std::size_t count = end - begin;
    const Planes planes = {sums + begin, stride};
    const std::size_t rest_at = tile_sums({.m = m.data() + begin,
                                           .m_stride = cols,
                                           .rows = rows,
                                           .cols = count,
                                           .before = begin,
                                           .p = p.data(),
                                           .rank = rank,
                                           .sums = planes});
    const Out to = q.subspan(begin * rank, count * rank);
    const std::size_t whole = count / kPlaneGroup * kPlaneGroup;
    PlanesToFactor(planes, whole, rank, to.data());
    PlanesToFactor({planes.at + rest_at, stride}, count - whole, rank, to.data() + whole * rank);
    if (AllFinite(to)) return;
    for (std::size_t k = 0; k < to.size(); ++k) {
      if (!std::isfinite(to[k]))
        to[k] = WideProduct(m.data() + begin + k / rank, cols, p.data() + k % rank, rank, rows);
    }
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
