// Bytes an element of m, of what must be moved and of what is: Outer 4, AddOuter 8, OuterFeedback
// 12. The factors are read from the caches.
#include "kernels/blocks.h"
#include "kernels/cuda_low_rank.cuh"
#include "kernels/cuda_pack.cuh"
#include "kernels/low_rank.h"

namespace slimgrad::kernels::cuda {
namespace {

// What becomes of the entries of p transpose(q).
enum class To {
  kStore,  // m = 0 + entry
  kAdd,    // m = m + weight * entry
  kFeed,   // average = 0 + entry; m = m - entry
};

struct OuterCall {
  const float* p;
  const float* q;
  std::size_t rows;
  std::size_t cols;
  std::size_t rank;
  float weight;
  float* m;
  float* average;
};

// What a warp takes: kColumns columns of some rows. A thread has 4 of the columns: neighbours,
// where they are one access, and else columns a warp apart.
constexpr unsigned kColumns = 4 * kWarp;
constexpr std::size_t kTileRows = 32;  // a bit each in a word

template <bool kPacked>
struct Columns {
  __device__ Columns(const OuterCall& call, std::size_t tile) {
    first = tile * kColumns + (kPacked ? 4 * Lane() : Lane());
    const std::size_t left = first < call.cols ? call.cols - first : 0;
    count = static_cast<int>(min(kPacked ? left : BlockCount(left, kWarp), std::size_t{4}));
  }
  __device__ std::size_t At(int k) const { return first + (kPacked ? k : k * kWarp); }

  std::size_t first;
  int count;  // of 4; packed, all or none
};

using Four = Pack<float, 4>;

template <bool kPacked>
__device__ Four Load(const float* row, const Columns<kPacked>& columns) {
  if constexpr (kPacked) {
    return LoadPack<4>(row + columns.first);
  } else {
    Four values = {};
    for (int k = 0; k < 4; ++k)
      if (k < columns.count) values.at[k] = row[columns.At(k)];
    return values;
  }
}

template <bool kPacked>
__device__ void Store(const Four& values, const Columns<kPacked>& columns, float* row) {
  if constexpr (kPacked) {
    StorePack(values, row + columns.first);
  } else {
    for (int k = 0; k < 4; ++k)
      if (k < columns.count) row[columns.At(k)] = values.at[k];
  }
}

// Some columns of the factor q at the thread's columns of m; zeros beyond its end.
template <int kRank, bool kPacked>
struct Factor {
  __device__ void Load(const OuterCall& call, const Columns<kPacked>& columns, std::size_t first) {
    for (int k = 0; k < 4; ++k) {
      const float* const from = call.q + columns.At(k) * call.rank + first;
      for (int r = 0; r < kRank; ++r)
        at[k][r] = k < columns.count && first + r < call.rank ? from[r] : 0.0F;
    }
  }

  // Adds the products with a row of p, which is zero where this is.
  __device__ void AddTo(Four& sums, const float* p, std::size_t count) const {
    for (int r = 0; r < kRank; ++r) {
      const float value = r < count ? p[r] : 0.0F;
      for (int k = 0; k < 4; ++k) sums.at[k] += value * at[k][r];
    }
  }

  float at[4][kRank];
};

template <To kTo>
__device__ float Written(const OuterCall& call, float entry, float m) {
  return kTo == To::kStore ? 0.0F + entry : AddSaturating(m, call.weight * entry);
}

template <To kTo, bool kPacked>
__device__ void WriteRow(const OuterCall& call, std::size_t row, const Columns<kPacked>& columns,
                         const Four& entries, Four m) {
  const std::size_t at = row * call.cols;
  if constexpr (kTo == To::kFeed) {
    Four average;
    for (int k = 0; k < 4; ++k) average.at[k] = 0.0F + entries.at[k];
    Store(average, columns, call.average + at);
  }
  for (int k = 0; k < 4; ++k) m.at[k] = Written<kTo>(call, entries.at[k], m.at[k]);
  Store(m, columns, call.m + at);
}

__device__ bool AllFinite(const Four& values) {
  return IsFinite(values.at[0]) && IsFinite(values.at[1]) && IsFinite(values.at[2]) &&
         IsFinite(values.at[3]);
}

// An entry from scratch, where fp32 does not do for all of a thread's.
template <To kTo>
__device__ void WriteEntry(const OuterCall& call, std::size_t row, std::size_t column) {
  const float* const p = call.p + row * call.rank;
  const float* const q = call.q + column * call.rank;
  float entry = 0;
#pragma unroll 1
  for (std::size_t r = 0; r < call.rank; ++r) entry += p[r] * q[r];
  if (!IsFinite(entry)) entry = WideProduct(p, 1, q, 1, call.rank);
  const std::size_t at = row * call.cols + column;
  if constexpr (kTo == To::kFeed) call.average[at] = 0.0F + entry;
  call.m[at] = Written<kTo>(call, entry, kTo == To::kStore ? 0.0F : call.m[at]);
}

// Entries of up to kRows rows from `row` on, of which there are `rows`; q holds its first columns,
// and is spoilt where that is not all of them.
template <int kRank, int kRows, bool kPacked>
__device__ void SumRows(const OuterCall& call, const Columns<kPacked>& columns, std::size_t row,
                        unsigned rows, Factor<kRank, kPacked>& q, Four (&sums)[kRows]) {
#pragma unroll 1
  for (std::size_t first = 0; first < call.rank; first += kRank) {
    if (call.rank > kRank) q.Load(call, columns, first);
    for (int i = 0; i < kRows; ++i)
      if (i < rows) q.AddTo(sums[i], call.p + (row + i) * call.rank + first, call.rank - first);
  }
}

// kRank columns of q stay in registers for all rows of a tile; where there are more, they are
// loaded again for each few rows. Two blocks at once are asked for: left to itself, the compiler
// spills some registers to make room for more.
template <To kTo, int kRank, bool kPacked>
__global__ void __launch_bounds__(kThreads, 2) OuterKernel(Guard guard, OuterCall call) {
  if (guard.Closed()) return;
  constexpr int kRows = kRank < 8 ? 2 : 1;
  const std::size_t across = BlockCount(call.cols, kColumns);
  const std::size_t tiles = across * BlockCount(call.rows, kTileRows);
  for (std::size_t tile = FirstItem() / kWarp; tile < tiles; tile += ItemStride() / kWarp) {
    const Columns<kPacked> columns(call, tile % across);
    if (columns.count == 0) continue;
    const std::size_t begin = tile / across * kTileRows;
    const auto rows = static_cast<unsigned>(min(call.rows - begin, kTileRows));
    std::uint32_t left = 0;  // rows for WriteEntry
    Factor<kRank, kPacked> q;
    q.Load(call, columns, 0);
#pragma unroll 1
    for (unsigned row = 0; row < rows; row += kRows) {
      Four m[kRows] = {}, sums[kRows] = {};
      if constexpr (kTo != To::kStore) {
        for (int i = 0; i < kRows; ++i)
          if (row + i < rows) m[i] = Load(call.m + (begin + row + i) * call.cols, columns);
      }
      SumRows(call, columns, begin + row, rows - row, q, sums);
      for (int i = 0; i < kRows; ++i) {
        if (row + i >= rows) break;
        if (AllFinite(sums[i])) {
          WriteRow<kTo>(call, begin + row + i, columns, sums[i], m[i]);
        } else {
          left |= 1U << (row + i);
        }
      }
    }
#pragma unroll 1
    for (; left != 0; left &= left - 1)
#pragma unroll 1
      for (int k = 0; k < columns.count; ++k)
        WriteEntry<kTo>(call, begin + __ffs(static_cast<int>(left)) - 1, columns.At(k));
  }
}

template <To kTo, int kRank>
void LaunchOuter(const Backend& backend, const OuterCall& call) {
  const bool packed = call.cols % 4 == 0 && Aligned(call.m, call.average);
  const std::size_t tiles = BlockCount(call.cols, kColumns) * BlockCount(call.rows, kTileRows);
  Launch(backend, "outer product", BlocksFor(backend, tiles, kThreads / kWarp), kThreads,
         packed ? OuterKernel<kTo, kRank, true> : OuterKernel<kTo, kRank, false>, call);
}

template <To kTo>
void Multiply(const Backend& backend, const OuterCall& call) {
  if (call.rows == 0 || call.cols == 0) return;
  const auto launch = call.rank <= 1   ? LaunchOuter<kTo, 1>
                      : call.rank <= 2 ? LaunchOuter<kTo, 2>
                      : call.rank <= 4 ? LaunchOuter<kTo, 4>
                                       : LaunchOuter<kTo, 8>;
  launch(backend, call);
}

}  // namespace

void AddOuter(const Backend& backend, Scratch&, In p, In q, std::size_t rows, std::size_t cols,
              std::size_t rank, float weight, Out m) {
  Multiply<To::kAdd>(backend, {p.data(), q.data(), rows, cols, rank, weight, m.data(), nullptr});
}

void Outer(const Backend& backend, Scratch&, In p, In q, std::size_t rows, std::size_t cols,
           std::size_t rank, Out m) {
  Multiply<To::kStore>(backend, {p.data(), q.data(), rows, cols, rank, 1.0F, m.data(), nullptr});
}

void OuterFeedback(const Backend& backend, Scratch&, In p, In q, std::size_t rows, std::size_t cols,
                   std::size_t rank, Out average, Out residual) {
  Multiply<To::kFeed>(
      backend, {p.data(), q.data(), rows, cols, rank, -1.0F, residual.data(), average.data()});
}

}  // namespace slimgrad::kernels::cuda
