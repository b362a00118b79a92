// Bytes an element, of what must be moved and of what is, in blocks of 256: Int8Encode 5.02,
// Int8EncodeFeedback 13.02, Int8Decode 5.02, Int8DecodeAdd 9.02; of Int4 half a byte less. One pass
// each. Blocks of more than 8192 elements are encoded in two: 9 and 21 bytes.
#include "kernels/cuda_encode_blocks.cuh"
#include "kernels/elementwise.h"

namespace slimgrad::kernels::cuda {
namespace {

// The largest of a tile's magnitudes, to all its threads.
__device__ std::uint32_t TileTop(const Tile& tile) {
  __shared__ std::uint32_t tops[kThreads / kWarp];
  std::uint32_t top = 0;
  for (unsigned k = 0; k < kTilePieces; ++k) top = max(top, TopMagnitude(tile.ValuesAt(k)));
  top = __reduce_max_sync(~0U, top);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) tops[threadIdx.x / kWarp] = top;
  __syncthreads();
  const unsigned first = (threadIdx.x - tile.thread) / kWarp;
  for (unsigned w = 0; w < tile.threads / kWarp; ++w) top = max(top, tops[first + w]);
  return top;
}

// Magnitudes are in the order of their bits, so that the largest may be found by whoever comes.
template <bool kFeedback, bool kWhole>
__global__ void __launch_bounds__(kThreads) TopsKernel(Guard guard, EncodeCall call) {
  if (guard.Closed()) return;
  __shared__ alignas(16) float values[kTile];
  ForSlices(call, values, [&](std::size_t b, const Tile& tile) {
    LoadSlice<kFeedback, kWhole>(call, tile);
    const std::uint32_t top = TileTop(tile);
    if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned*>(call.scales + b), top);
  });
}

template <int kCodeBits>
struct Integers {
  static constexpr int kBits = kCodeBits;
  static constexpr unsigned kFewestLanes = 1;
  static constexpr int kResident = 6, kResidentFed = 4;

  static __device__ float SmallScale(const Values& v, unsigned lanes) {
    std::uint32_t top = TopMagnitude(v);
    for (unsigned width = lanes / 2; width > 0; width /= 2)
      top = max(top, __shfl_xor_sync(~0U, top, width));
    return __uint_as_float(top);
  }

  static __device__ float TileScale(const Tile& tile) { return __uint_as_float(TileTop(tile)); }

  static __device__ void Round(const EncodeCall& call, Values& v, std::size_t at) {
    if (call.rounding == Rounding::kNearest) {
      for (int k = 0; k < kPiece; ++k) v.at[k] = RoundNearest(v.at[k]);
      return;
    }
    const Dithers dithers(call.key, at);
    for (int k = 0; k < kPiece; ++k) v.at[k] = RoundStochastic(v.at[k], dithers[k], call.largest);
  }

  template <bool kFeedback, bool kWhole>
  static void FindScales(const Backend& backend, const EncodeCall& call) {
    cuda::Fill(backend, 0.0F, {call.scales, call.blocks});
    Launch(backend, "find scales", BlocksForSlices(backend, call), kThreads,
           TopsKernel<kFeedback, kWhole>, call);
  }
};

}  // namespace

void EncodeInt8(const Backend& backend, const EncodeCall& call) {
  EncodeBlocks<Integers<8>>(backend, call);
}

void EncodeInt4(const Backend& backend, const EncodeCall& call) {
  EncodeBlocks<Integers<4>>(backend, call);
}

void DecodeInt8(const Backend& backend, const DecodeCall& call) { DecodeBlocks<8>(backend, call); }

void DecodeInt4(const Backend& backend, const DecodeCall& call) { DecodeBlocks<4>(backend, call); }

}  // namespace slimgrad::kernels::cuda
