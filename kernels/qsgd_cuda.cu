// Bytes an element, of what must be moved and of what is, in buckets of 128: QsgdEncode 5.03,
// QsgdEncodeFeedback 13.03. One pass each. Buckets of more than 8192 elements are encoded in two: 9
// and 21 bytes; once more, 4 bytes, where one's squares overflow fp32 or lose bits. DecodeInt8
// decodes them, 5.03 and with adding 9.03.
#include <type_traits>

#include "kernels/cuda_encode_blocks.cuh"
#include "kernels/cuda_lane_sum.cuh"

namespace slimgrad::kernels::cuda {
namespace {

// For a norm that is to be formed in fp64.
constexpr float kUnknown = -1.0F;

// The norm of a sum of squares, or kUnknown.
__device__ float NormOf(float sum) {
  return sum >= 0x1p-100F && IsFinite(sum) ? sqrtf(sum) : kUnknown;
}
__device__ float NormOf(double sum) { return SaturateToFloat(sqrt(sum)); }

template <class T>
__device__ T Square(float x) {
  return static_cast<T>(x) * static_cast<T>(x);
}

// --- small buckets: a thread has 8 lanes of the LaneSum, as has each 8th thread after it

// One run's lanes: the sums of threads 8 apart, in order, to the first 8 threads.
template <class T>
__device__ void SumLanes(const Values& v, unsigned threads, T (&sums)[kPiece]) {
  for (int k = 0; k < kPiece; ++k) sums[k] = Square<T>(v.at[k]);
  for (unsigned t = kPiece; t < threads; t += kPiece)
    for (int k = 0; k < kPiece; ++k) sums[k] += __shfl_down_sync(~0U, Square<T>(v.at[k]), t);
}

// A step of the tree, of lanes whose threads are kApart apart: each of two threads keeps half of
// its lanes and gives the other half away.
template <int kHalf, unsigned kApart, class T>
__device__ void Halve(T (&sums)[kPiece]) {
  const bool upper = (threadIdx.x & kApart) != 0;
  for (int k = 0; k < kHalf; ++k) {
    const T kept = upper ? sums[k + kHalf] : sums[k];
    const T given = upper ? sums[k] : sums[k + kHalf];
    sums[k] = kept + __shfl_xor_sync(~0U, given, kApart);
  }
}

// LaneSum of the squares of values that 8, 16 or 32 threads of a warp have, 8 each, to all of them.
template <class T>
__device__ T SumSquares(const Values& v, unsigned threads) {
  T sums[kPiece];
  SumLanes(v, threads, sums);
  // Lanes 32, 16 and 8 apart are the same ones of threads 4, 2 and 1 apart ...
  Halve<4, 4>(sums);
  Halve<2, 2>(sums);
  Halve<1, 1>(sums);
  // ... and those threads now have lanes 4, 2 and 1 apart.
  for (unsigned apart : {4U, 2U, 1U}) sums[0] += __shfl_xor_sync(~0U, sums[0], apart);
  return __shfl_sync(~0U, sums[0], threadIdx.x & ~(threads - 1));
}

// Kept apart, as it is seldom called and needs registers.
__device__ __noinline__ float WideNorm(const Values v, unsigned threads) {
  return NormOf(SumSquares<double>(v, threads));
}

// --- tiles

// The LaneSum of the squares of a run of a tile, by a warp.
template <class T>
__device__ T SumRun(const Tile& tile, unsigned run) {
  const float* const values = tile.values + run * kSumBlock;
  const unsigned n = min(tile.size - run * unsigned{kSumBlock}, unsigned{kSumBlock});
  return WarpRunSum<T>(n, [&](std::uint32_t i) { return Square<T>(values[i]); });
}

// The sum of a tile's runs, to all its threads; a __syncthreads() comes between its reading and
// what follows. Tiles that do not want it get 0.
template <class T>
__device__ T SumTile(const Tile& tile, bool wanted) {
  __shared__ T sums[kThreads / kWarp];
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned run = tile.thread / kWarp;
  if (wanted && run * kSumBlock < tile.size) {
    const T sum = SumRun<T>(tile, run);
    if (threadIdx.x % kWarp == 0) sums[warp] = sum;
  }
  __syncthreads();
  T total = 0;
  if (!wanted) return total;
  const unsigned first = warp - run;
  for (unsigned r = 0; r * kSumBlock < tile.size; ++r) total += sums[first + r];
  return total;
}

struct Levels {
  static constexpr int kBits = 8;
  static constexpr unsigned kFewestLanes = kPiece;
  static constexpr int kResident = 4, kResidentFed = 4;

  // Zeros are many, and have no need of fp64.
  static __device__ float SmallScale(const Values& v, unsigned lanes) {
    const float norm = NormOf(SumSquares<float>(v, lanes));
    const bool unknown = norm == kUnknown;
    float wide = 0;
    if (__any_sync(~0U, unknown && TopMagnitude(v) != 0)) wide = WideNorm(v, lanes);
    return unknown ? wide : norm;
  }

  static __device__ float TileScale(const Tile& tile) {
    __syncthreads();
    const float norm = NormOf(SumTile<float>(tile, true));
    const bool unknown = norm == kUnknown;
    bool any = false;
    for (unsigned k = 0; k < kTilePieces && unknown; ++k)
      any |= TopMagnitude(tile.ValuesAt(k)) != 0;
    float wide = 0;
    if (__syncthreads_or(any)) wide = NormOf(SumTile<double>(tile, unknown));
    return unknown ? wide : norm;
  }

  static __device__ void Round(const EncodeCall& call, Values& v, std::size_t at) {
    const Dithers dithers(call.key, at);
    for (int k = 0; k < kPiece; ++k) v.at[k] = RoundLevel(v.at[k], dithers[k], call.largest);
  }

  template <bool kFeedback, bool kWhole>
  static void FindScales(const Backend& backend, const EncodeCall& call);
};

// --- long buckets: the sums of their runs, then the norms

__device__ std::size_t LengthOf(const EncodeCall& call, std::size_t b) {
  return min(call.block, call.n - b * call.block);
}

// Where the sums of the runs of a bucket stand: where its codes will, which have more than 8192
// bytes.
template <class T>
__device__ T* RunSums(const EncodeCall& call, std::size_t b) {
  const auto codes = reinterpret_cast<std::uintptr_t>(call.codes + b * call.block);
  return reinterpret_cast<T*>((codes + sizeof(T) - 1) / sizeof(T) * sizeof(T));
}

// Of a slice that is in shared memory. Whole blocks of threads call it.
template <class T>
__device__ void StoreRunSums(const EncodeCall& call, std::size_t b, const Tile& tile) {
  __syncthreads();
  const unsigned run = threadIdx.x / kWarp;
  if (run * kSumBlock < tile.size) {
    const T sum = SumRun<T>(tile, run);
    const std::size_t before = (tile.begin - b * call.block) / kSumBlock;
    if (threadIdx.x % kWarp == 0) RunSums<T>(call, b)[before + run] = sum;
  }
  __syncthreads();
}

// kWide: of buckets whose norms are unknown; what they are of is x, or what the residual became.
template <bool kWide, bool kFeedback, bool kWhole>
__global__ void __launch_bounds__(kThreads) RunsKernel(Guard guard, EncodeCall call) {
  if (guard.Closed()) return;
  __shared__ alignas(16) float values[kTile];
  if (kWide && call.residual != nullptr) call.x = call.residual;
  ForSlices(call, values, [&](std::size_t b, const Tile& tile) {
    if (kWide && call.scales[b] != kUnknown) return;
    LoadSlice<kFeedback, kWhole>(call, tile);
    if (LengthOf(call, b) > kTile)
      return StoreRunSums<std::conditional_t<kWide, double, float>>(call, b, tile);
    const float norm = Levels::TileScale(tile);  // the last bucket, if it is short
    if (threadIdx.x == 0) call.scales[b] = norm;
  });
}

// Sum of sums[0] ... sums[count - 1], in order, to all threads of the block.
template <class T>
__device__ T SumInOrder(const T* sums, std::size_t count) {
  __shared__ T some[kThreads];
  T total = 0;
  for (std::size_t first = 0; first < count; first += kThreads) {
    const auto size = static_cast<unsigned>(min(count - first, std::size_t{kThreads}));
    if (threadIdx.x < size) some[threadIdx.x] = sums[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (unsigned i = 0; i < size; ++i) total += some[i];
    __syncthreads();
  }
  return total;
}

// A block of threads a bucket.
template <class T>
__global__ void __launch_bounds__(kThreads) NormsKernel(Guard guard, EncodeCall call) {
  if (guard.Closed()) return;
  constexpr bool kWide = std::is_same_v<T, double>;
  for (std::size_t b = blockIdx.x; b < call.blocks; b += gridDim.x) {
    const std::size_t length = LengthOf(call, b);
    if (length <= kTile || (kWide && call.scales[b] != kUnknown)) continue;
    const float norm = NormOf(SumInOrder(RunSums<T>(call, b), BlockCount(length, kSumBlock)));
    if (threadIdx.x == 0) call.scales[b] = norm;
  }
}

template <bool kFeedback, bool kWhole>
void Levels::FindScales(const Backend& backend, const EncodeCall& call) {
  const unsigned slices = BlocksForSlices(backend, call);
  const unsigned buckets = BlocksFor(backend, call.blocks, 1);
  Launch(backend, "sum runs", slices, kThreads, RunsKernel<false, kFeedback, kWhole>, call);
  Launch(backend, "find norms", buckets, kThreads, NormsKernel<float>, call);
  Launch(backend, "sum runs in fp64", slices, kThreads, RunsKernel<true, false, kWhole>, call);
  Launch(backend, "find norms in fp64", buckets, kThreads, NormsKernel<double>, call);
}

}  // namespace

void EncodeLevels(const Backend& backend, const EncodeCall& call) {
  EncodeBlocks<Levels>(backend, call);
}

}  // namespace slimgrad::kernels::cuda
