// Bytes an element of m, of what must be moved and of what is, at ranks of up to 8: MultiplyLeft 4;
// beyond, 4 more for each 8 of the rank, from the second cache if at all.
//
// An entry of q is one chain of additions over all rows, so there are no more threads that add than
// q has entries: few, for what must be in flight from memory. A block of threads therefore fetches
// rows of a few columns to shared memory, all threads ahead of those that add.
#include <cuda_pipeline.h>

#include "kernels/blocks.h"
#include "kernels/cuda_low_rank.cuh"
#include "kernels/cuda_pack.cuh"
#include "kernels/low_rank.h"

namespace slimgrad::kernels::cuda {
namespace {

struct LeftCall {
  const float* m;
  std::size_t rows;
  std::size_t cols;
  const float* p;
  std::size_t rank;
  float* q;
  bool packed;    // m is aligned, and its rows are whole accesses of 16 bytes
  bool packed_p;  // so is p
};

constexpr std::size_t kStageFloats = 6144;  // of 48 KiB, half

// Some rows of kColumns columns of m and kRanks of p, from `column` and `first` on.
template <unsigned kColumns, unsigned kRanks>
struct alignas(16) Stage {
  static constexpr unsigned kRows = kStageFloats / (kColumns + kRanks) / kWarp * kWarp;

  // Fetches rows from `row` on. All threads call it.
  __device__ void Fetch(const LeftCall& call, std::size_t row, std::size_t column,
                        std::size_t first) {
    const auto count = static_cast<unsigned>(min(call.rows - row, std::size_t{kRows}));
    const float* const m = call.m + row * call.cols + column;
    const float* const p = call.p + row * call.rank + first;
    Fetch<kColumns>(m, call.cols, call.cols - column, count, call.packed, &this->m[0][0]);
    Fetch<kRanks>(p, call.rank, call.rank - first, count, call.packed_p, &this->p[0][0]);
    __pipeline_commit();
  }

  // `count` rows of kWidth columns; zeros beyond the matrix. Packed: in accesses of 16 bytes.
  template <unsigned kWidth>
  static __device__ void Fetch(const float* from, std::size_t stride, std::size_t columns,
                               unsigned count, bool packed, float* to) {
    if constexpr (kWidth >= 4) {
      if (packed) return FetchBy<kWidth, 4>(from, stride, columns, count, to);
    }
    FetchBy<kWidth, 1>(from, stride, columns, count, to);
  }
  template <unsigned kWidth, unsigned kBy>
  static __device__ void FetchBy(const float* from, std::size_t stride, std::size_t columns,
                                 unsigned count, float* to) {
    constexpr unsigned kAcross = kWidth / kBy;
    const unsigned column = threadIdx.x % kAcross * kBy;
    unsigned i = threadIdx.x / kAcross;
    if (column >= columns) {
      for (; i < count; i += kThreads / kAcross)
        for (unsigned k = 0; k < kBy; ++k) to[i * kWidth + column + k] = 0;
      return;
    }
    from += i * stride + column;
    for (; i < count; i += kThreads / kAcross, from += kThreads / kAcross * stride)
      __pipeline_memcpy_async(to + i * kWidth + column, from, kBy * sizeof(float));
  }

  float m[kRows][kColumns];
  float p[kRows][kRanks];
};

// The entries of q of kColumns columns of m and kRanks of p: a thread adds for two of the columns.
template <unsigned kColumns, unsigned kRanks>
__device__ void MultiplyColumns(const LeftCall& call, Stage<kColumns, kRanks> (&stages)[2],
                                std::size_t column, std::size_t first) {
  constexpr unsigned kRows = Stage<kColumns, kRanks>::kRows;
  const unsigned j = threadIdx.x % (kColumns / 2) * 2;
  const unsigned r = threadIdx.x / (kColumns / 2);
  float sums[2] = {0, 0};
  stages[0].Fetch(call, 0, column, first);
  unsigned now = 0;
  for (std::size_t row = 0; row < call.rows; row += kRows, now ^= 1) {
    const auto count = static_cast<unsigned>(min(call.rows - row, std::size_t{kRows}));
    const bool more = count < call.rows - row;
    if (more) stages[now ^ 1].Fetch(call, row + kRows, column, first);
    __pipeline_wait_prior(more ? 1 : 0);
    __syncthreads();
    const Stage<kColumns, kRanks>& stage = stages[now];
    if (r < kRanks) {
#pragma unroll 8
      for (unsigned i = 0; i < count; ++i) {
        const auto m = LoadPack<2>(&stage.m[i][j]);
        for (int k = 0; k < 2; ++k) sums[k] += m.at[k] * stage.p[i][r];
      }
    }
    __syncthreads();
  }
  for (int k = 0; k < 2; ++k) {
    const std::size_t at = column + j + k;
    if (r >= kRanks || first + r >= call.rank || at >= call.cols) break;
    if (!IsFinite(sums[k]))
      sums[k] = WideProduct(call.m + at, call.cols, call.p + first + r, call.rank, call.rows);
    call.q[at * call.rank + first + r] = sums[k];
  }
}

template <unsigned kColumns, unsigned kRanks>
__global__ void __launch_bounds__(kThreads, 4) LeftKernel(Guard guard, LeftCall call) {
  if (guard.Closed()) return;
  __shared__ Stage<kColumns, kRanks> stages[2];
  static_assert(kColumns / 2 * kRanks <= kThreads);
  const std::size_t slices = BlockCount(call.rank, kRanks);
  const std::size_t items = BlockCount(call.cols, kColumns) * slices;
  for (std::size_t item = blockIdx.x; item < items; item += gridDim.x)
    MultiplyColumns(call, stages, item / slices * kColumns, item % slices * kRanks);
}

// As many columns as leave every multiprocessor something to do: pieces of rows that are too short
// keep memory from its best.
template <unsigned kRanks>
void Multiply(const Backend& backend, const LeftCall& call) {
  const std::size_t slices = BlockCount(call.rank, kRanks);
  const std::size_t wanted = std::size_t{2} * backend.cuda->multiprocessors();
  const auto launch = [&](auto kernel, std::size_t columns) {
    Launch(backend, "multiply columns",
           BlocksFor(backend, BlockCount(call.cols, columns) * slices, 1), kThreads, kernel, call);
  };
  if (BlockCount(call.cols, 32) * slices >= wanted) return launch(LeftKernel<32, kRanks>, 32);
  if (BlockCount(call.cols, 16) * slices >= wanted) return launch(LeftKernel<16, kRanks>, 16);
  launch(LeftKernel<8, kRanks>, 8);
}

}  // namespace

void MultiplyLeft(const Backend& backend, Scratch&, In m, std::size_t rows, std::size_t cols, In p,
                  std::size_t rank, Out q) {
  if (q.empty()) return;
  const auto multiply = rank <= 1   ? Multiply<1>
                        : rank <= 2 ? Multiply<2>
                        : rank <= 4 ? Multiply<4>
                                    : Multiply<8>;
  multiply(backend, {.m = m.data(),
                     .rows = rows,
                     .cols = cols,
                     .p = p.data(),
                     .rank = rank,
                     .q = q.data(),
                     .packed = cols % 4 == 0 && Aligned(m.data()),
                     .packed_p = rank % 4 == 0 && Aligned(p.data())});
}

}  // namespace slimgrad::kernels::cuda
