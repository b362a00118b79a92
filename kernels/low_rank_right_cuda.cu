// Bytes an element of m, of what must be moved and of what is, at ranks of up to 8: MultiplyRight
// 4, MultiplyRightFeedback 12; beyond, 4 more for each 8 of the rank. The factor q is read once for
// each few rows, from the caches.
#include "kernels/blocks.h"
#include "kernels/cuda_lane_sum.cuh"
#include "kernels/cuda_low_rank.cuh"
#include "kernels/elementwise.h"
#include "kernels/low_rank.h"

namespace slimgrad::kernels::cuda {
namespace {

// m itself; or with error feedback the residual, once it has grown by x.
struct Matrix {
  const float* x;  // null without feedback
  const float* m;
  float* residual;  // m with feedback
};

struct RightCall {
  Matrix matrix;
  std::size_t rows;
  std::size_t cols;
  const float* q;
  std::size_t rank;
  bool aligned;  // q is, for packs of it
  std::size_t runs;
  float* sums;  // of run k of entry e of p, at k * rows * rank + e
};

// Columns of q that are worked on at a time.
constexpr int kMostRank = 8;

// Rows that a warp takes at a time, so that q is loaded once for them.
template <int kRank>
constexpr int kRows = kRank < 4 ? 4 : 8 / kRank;

// Some rows and a run of columns; some of the columns of q.
struct Part {
  std::size_t row;
  std::size_t begin;
  unsigned columns;
  std::size_t first;
};

// Row j of q, from column `first` on; zeros beyond its end.
template <int kRank>
__device__ void LoadFactor(const RightCall& call, std::size_t j, std::size_t first,
                           float (&q)[kRank]) {
  constexpr int kVector = kRank < 4 ? kRank : 4;
  const float* const from = call.q + j * call.rank + first;
  if (call.aligned && call.rank % kVector == 0 && first + kRank <= call.rank) {
    const auto pack = LoadPack<kRank>(from);
    for (int r = 0; r < kRank; ++r) q[r] = pack.at[r];
  } else {
    for (int r = 0; r < kRank; ++r) q[r] = first + r < call.rank ? from[r] : 0.0F;
  }
}

// Entry `at` of m, which with kFeedback becomes residual + x, if it is this thread's to write.
template <bool kFeedback>
__device__ float LoadEntry(const RightCall& call, std::size_t at, bool write) {
  if constexpr (kFeedback) {
    const float sum = AddSaturating(call.matrix.residual[at], call.matrix.x[at]);
    if (write) call.matrix.residual[at] = sum;
    return sum;
  } else {
    return call.matrix.m[at];
  }
}

// The part's sums, by a warp, whose threads have two lanes each. Rows beyond the last are its first
// row again, for nothing.
template <int kRank, bool kFeedback>
__device__ void SumPart(const RightCall& call, const Part& part) {
  constexpr int kCount = kRows<kRank>;
  const auto rows = static_cast<int>(min(call.rows - part.row, std::size_t{kCount}));
  float lanes[2][kCount][kRank] = {};
  const auto add = [&](int half, std::uint32_t i) {
    float entry[kCount], q[kRank];
    const std::size_t at = part.row * call.cols + part.begin + i;
    for (int k = 0; k < kCount; ++k)
      entry[k] = LoadEntry<kFeedback>(call, at + (k < rows ? k : 0) * call.cols, k < rows);
    LoadFactor(call, part.begin + i, part.first, q);
    for (int k = 0; k < kCount; ++k)
      for (int r = 0; r < kRank; ++r) lanes[half][k][r] += entry[k] * q[r];
  };
  constexpr int kAtOnce = kFeedback ? 1 : 2;  // so that enough is on its way from memory
  ForGroup<kAtOnce>(kWarp, part.columns, add);
  float* const sums = call.sums + part.begin / kSumBlock * call.rows * call.rank;
  for (int k = 0; k < kCount; ++k) {
    for (int r = 0; r < kRank; ++r) {
      const float sum = JoinGroup(kWarp, lanes[0][k][r], lanes[1][k][r]);
      if (Lane() == 0 && k < rows && part.first + r < call.rank)
        sums[(part.row + k) * call.rank + part.first + r] = sum;
    }
  }
}

template <int kRank, bool kFeedback>
__global__ void __launch_bounds__(kThreads) RunsKernel(Guard guard, RightCall call) {
  if (guard.Closed()) return;
  const std::size_t groups = BlockCount(call.rows, kRows<kRank>);
  for (std::size_t item = FirstItem() / kWarp; item < groups * call.runs;
       item += ItemStride() / kWarp) {
    const std::size_t begin = item % call.runs * kSumBlock;
    Part part = {.row = item / call.runs * kRows<kRank>,
                 .begin = begin,
                 .columns = static_cast<unsigned>(min(call.cols - begin, kSumBlock)),
                 .first = 0};
    SumPart<kRank, kFeedback>(call, part);
    if constexpr (kRank == kMostRank) {
      // By the same threads, so of what each has made of m itself.
      for (part.first = kRank; part.first < call.rank; part.first += kRank)
        SumPart<kRank, false>(call, part);
    }
  }
}

// An entry of p in fp64, by a warp.
__device__ float WideEntry(const RightCall& call, std::size_t entry) {
  const float* const m = call.matrix.m + entry / call.rank * call.cols;
  const float* const q = call.q + entry % call.rank;
  double total = 0;
  for (std::size_t begin = 0; begin < call.cols; begin += kSumBlock) {
    const auto n = static_cast<std::uint32_t>(min(call.cols - begin, kSumBlock));
    total += WarpRunSum<double>(n, [&](std::uint32_t i) {
      return static_cast<double>(m[begin + i]) * static_cast<double>(q[(begin + i) * call.rank]);
    });
  }
  return SaturateToFloat(total);
}

// Adds up the runs of each entry. Warps stay together, for entries that are formed again.
__global__ void __launch_bounds__(kThreads) EntriesKernel(Guard guard, RightCall call, float* p) {
  if (guard.Closed()) return;
  const std::size_t size = call.rows * call.rank;
  for (std::size_t first = FirstItem() - Lane(); first < size; first += ItemStride()) {
    const std::size_t e = first + Lane();
    float sum = 0;
    for (std::size_t run = 0; run < call.runs && e < size; ++run) sum += call.sums[run * size + e];
    unsigned again = __ballot_sync(~0U, !IsFinite(sum));
    for (; again != 0; again &= again - 1) {
      const unsigned which = __ffs(static_cast<int>(again)) - 1;
      const float wide = WideEntry(call, first + which);
      if (Lane() == which) sum = wide;
    }
    if (e < size) p[e] = sum;
  }
}

template <int kRank>
void LaunchRuns(const Backend& backend, const RightCall& call) {
  const std::size_t items = BlockCount(call.rows, kRows<kRank>) * call.runs;
  Launch(backend, "multiply rows", BlocksFor(backend, items, kThreads / kWarp), kThreads,
         call.matrix.x != nullptr ? RunsKernel<kRank, true> : RunsKernel<kRank, false>, call);
}

void Multiply(const Backend& backend, Scratch& scratch, Matrix matrix, std::size_t rows,
              std::size_t cols, In q, std::size_t rank, Out p) {
  if (p.empty()) return;
  const std::size_t runs = BlockCount(cols, kSumBlock);
  ScratchScope scope(scratch);
  const RightCall call = {.matrix = matrix,
                          .rows = rows,
                          .cols = cols,
                          .q = q.data(),
                          .rank = rank,
                          .aligned = Aligned(q.data()),
                          .runs = runs,
                          .sums = runs == 1 ? p.data() : scope.Take<float>(p.size() * runs).data()};
  const auto launch = rank <= 1   ? LaunchRuns<1>
                      : rank <= 2 ? LaunchRuns<2>
                      : rank <= 4 ? LaunchRuns<4>
                                  : LaunchRuns<kMostRank>;
  launch(backend, call);
  Launch(backend, "add up runs", BlocksFor(backend, p.size(), kThreads), kThreads, EntriesKernel,
         call, p.data());
}

}  // namespace

void MultiplyRight(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                   std::size_t cols, In q, std::size_t rank, Out p) {
  Multiply(backend, scratch, {nullptr, m.data(), nullptr}, rows, cols, q, rank, p);
}

void MultiplyRightFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                           std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p) {
  if (rank == 0) return cuda::AddSaturated(backend, x, residual);
  Multiply(backend, scratch, {x.data(), residual.data(), residual.data()}, rows, cols, q, rank, p);
}

}  // namespace slimgrad::kernels::cuda
