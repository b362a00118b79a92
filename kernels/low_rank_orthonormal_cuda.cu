// Orthonormalize: one block of threads, which goes on from column to column, and to a random
// direction in place of one, without the host. The matrix is thin, so that its columns come from
// the caches: what counts is how often all threads wait for each other, some 12 times a column.
#include "kernels/blocks.h"
#include "kernels/cuda_lane_sum.cuh"
#include "kernels/cuda_low_rank.cuh"
#include "kernels/cuda_philox.cuh"
#include "kernels/low_rank.h"

namespace slimgrad::kernels::cuda {
namespace {

constexpr unsigned kMostThreads = 1024;
constexpr std::size_t kSharedRows = 8192;

struct Basis {
  std::size_t rows;
  std::size_t rank;
  RandomKey key;
  float* p;
  float* columns;  // those that are done, one after the other, and what is to be the next
  double* sums;    // of run k of product j, at j * runs + k
  std::size_t runs;

  __device__ float* Column(std::size_t c) const { return columns + c * rows; }
};

// Calls body(i) for all rows. What it writes, all threads see.
template <class Body>
__device__ void ForRows(const Basis& basis, const Body& body) {
  for (std::size_t i = threadIdx.x; i < basis.rows; i += blockDim.x) body(i);
  __syncthreads();
}

// parts[k] = LaneSum of the products of v and column first + k, for k < count.
__device__ void Dots(const Basis& basis, const float* columns, unsigned count, const float* v,
                     double* parts) {
  for (std::size_t at = WarpOfBlock(); at < count * basis.runs; at += blockDim.x / kWarp) {
    const std::size_t begin = at % basis.runs * kSumBlock;
    const float* const a = columns + at / basis.runs * basis.rows + begin;
    const float* const b = v + begin;
    const auto n = static_cast<std::uint32_t>(min(basis.rows - begin, kSumBlock));
    const double sum = WarpRunSum<double>(
        n, [&](std::uint32_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
    if (Lane() == 0) basis.sums[at] = sum;
  }
  __syncthreads();
  for (unsigned k = threadIdx.x; k < count; k += blockDim.x) {
    double total = 0;
    for (std::size_t run = 0; run < basis.runs; ++run) total += basis.sums[k * basis.runs + run];
    parts[k] = total;
  }
  __syncthreads();
}

// v = v / |v|; returns |v| as it was.
__device__ double Normalize(const Basis& basis, float* v) {
  __shared__ double square;
  Dots(basis, v, 1, v, &square);
  const double length = sqrt(square);
  if (length != 0)
    ForRows(basis,
            [&](std::size_t i) { v[i] = static_cast<float>(static_cast<double>(v[i]) / length); });
  return length;
}

// Takes the parts along columns 0 ... c - 1 out of v.
__device__ void Project(const Basis& basis, std::size_t c, float* v) {
  __shared__ double parts[kProjectColumns];
  for (std::size_t first = 0; first < c; first += kProjectColumns) {
    const auto count = static_cast<unsigned>(min(c - first, kProjectColumns));
    Dots(basis, basis.Column(first), count, v, parts);
    ForRows(basis, [&](std::size_t i) {
      double rest = v[i];
      for (unsigned k = 0; k < count; ++k)
        rest -= parts[k] * static_cast<double>(basis.Column(first + k)[i]);
      v[i] = static_cast<float>(rest);
    });
  }
}

// False, with v spoilt, where it is zero or depends on columns 0 ... c - 1.
__device__ bool MakeOrthonormal(const Basis& basis, std::size_t c, float* v) {
  if (Normalize(basis, v) == 0) return false;
  Project(basis, c, v);
  if (Normalize(basis, v) < 0x1p-20) return false;
  Project(basis, c, v);
  Normalize(basis, v);
  return true;
}

__global__ void __launch_bounds__(kMostThreads) OrthonormalizeKernel(Guard guard, Basis basis) {
  if (guard.Closed()) return;
  __shared__ float shared[kSharedRows];
  const std::size_t size = basis.rows * basis.rank;
  for (std::size_t c = 0; c < basis.rank; ++c) {
    float* const column = basis.Column(c);
    float* const v = basis.rows <= kSharedRows ? shared : column;
    float* const p = basis.p + c;
    ForRows(basis, [&](std::size_t i) { v[i] = p[i * basis.rank]; });
    for (std::uint64_t attempt = 0; !MakeOrthonormal(basis, c, v); ++attempt) {
      ForRows(basis, [&](std::size_t i) {
        const std::uint64_t at = attempt * size + i * basis.rank + c;
        v[i] = cuda::Philox(basis.key, at / kPhilox32s).Uniform(at) - 0.5F;
      });
    }
    ForRows(basis, [&](std::size_t i) { column[i] = p[i * basis.rank] = v[i]; });
  }
}

}  // namespace

void Orthonormalize(const Backend& backend, Scratch& scratch, std::size_t rows, std::size_t rank,
                    const RandomKey& key, Out p) {
  if (p.empty()) return;
  ScratchScope scope(scratch);
  const std::size_t runs = BlockCount(rows, kSumBlock);
  const Basis basis = {.rows = rows,
                       .rank = rank,
                       .key = key,
                       .p = p.data(),
                       .columns = scope.Take<float>(p.size()).data(),
                       .sums = scope.Take<double>(std::min(rank, kProjectColumns) * runs).data(),
                       .runs = runs};
  // Whole warps, as many as have something to do.
  const std::size_t warps = std::max(BlockCount(rows, kWarp), std::min(rank, kProjectColumns));
  const auto threads = static_cast<unsigned>(std::min<std::size_t>(kMostThreads, warps * kWarp));
  Launch(backend, "orthonormalize", 1, threads, OrthonormalizeKernel, basis);
}

}  // namespace slimgrad::kernels::cuda
