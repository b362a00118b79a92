// Private to the cuda kernels of quantize.h and qsgd.h: encoding, for a form of codes.
//
// A block is read once where its elements find room: up to kSmall of them in the registers of some
// of a warp's threads, up to kTile in shared memory, of a part of the block of threads. Of longer
// ones, a first pass finds the scales, a slice of kTile elements at a time, and a second encodes.
//
// A form is a class with
//   kBits                 of a code
//   kFewestLanes          threads that share a small block
//   kResident             blocks of threads that a multiprocessor should have room for
//   kResidentFed          the same with error feedback: for more, registers would spill
//   SmallScale(v, lanes)  the scale of values that `lanes` consecutive threads have, 8 each
//   TileScale(tile)       that of a tile's values, to all its threads; it begins with a
//                         __syncthreads(), and between its last reading of the tile, or of shared
//                         memory of its own, and the next call's first writing there is one too
//   FindScales<kFeedback, kWhole>(backend, call)
//                         launches what finds those of blocks longer than a tile and, with error
//                         feedback, makes the residual residual + x
//   Round(call, v, at)    the codes of v, plus kMagic, of elements from `at` on
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda_quantize.cuh"

namespace slimgrad::kernels::cuda {

inline constexpr unsigned kSmall = kWarp * kPiece;
inline constexpr unsigned kTilePieces = 4;  // a thread's
inline constexpr unsigned kTile = kThreads * kTilePieces * kPiece;

// Elements [begin, begin + size) and where their values lie, for the threads that share them.
struct Tile {
  std::size_t begin;
  unsigned size;
  unsigned threads;  // a power of two, at least a warp
  unsigned thread;   // this one
  float* values;     // shared memory

  __device__ Piece At(unsigned k) const {
    const unsigned first = (thread + threads * k) * kPiece;
    return {begin + first, first < size ? min(size - first, unsigned{kPiece}) : 0};
  }
  __device__ Values& ValuesAt(unsigned k) const {
    return reinterpret_cast<Values*>(values)[thread + threads * k];
  }
};

// kWhole: all pieces begin with an aligned access, and those of 8 elements may be one.
// kFeedback: of residual + x.
template <bool kFeedback, bool kWhole>
__device__ Values LoadValues(const EncodeCall& call, Piece piece) {
  Values v = {};
  const float* const x = call.x + piece.at;
  if (kWhole && piece.count == kPiece) {
    v = LoadPack<kPiece>(x);
    if constexpr (kFeedback) {
      const auto residual = LoadPack<kPiece>(call.residual + piece.at);
      for (int k = 0; k < kPiece; ++k) v.at[k] = AddSaturating(residual.at[k], v.at[k]);
    }
    return v;
  }
  for (int k = 0; k < kPiece; ++k) {
    if (k >= piece.count) break;
    v.at[k] = kFeedback ? AddSaturating(call.residual[piece.at + k], x[k]) : x[k];
  }
  return v;
}

template <bool kWhole>
__device__ void StoreValues(const Values& v, Piece piece, float* to) {
  if (kWhole && piece.count == kPiece) return StorePack(v, to + piece.at);
  for (int k = 0; k < kPiece; ++k) {
    if (k >= piece.count) break;
    to[piece.at + k] = v.at[k];
  }
}

// Codes of v, and with error feedback what they leave over.
template <class Form, bool kFeedback, bool kWhole>
__device__ void EncodeValues(const EncodeCall& call, Piece piece, const Scaling& scaling,
                             Values v) {
  if (piece.count == 0) return;
  Values rounded = scaling(v);
  Form::Round(call, rounded, piece.at);
  std::uint32_t word[kPiece];
  for (int k = 0; k < kPiece; ++k) word[k] = __float_as_uint(rounded.at[k]);
  StoreCodes<Form::kBits, kWhole>(word, piece, call.codes);
  if constexpr (kFeedback) {
    for (int k = 0; k < kPiece; ++k) v.at[k] -= scaling.Decode(rounded.at[k] - kMagic);
    StoreValues<kWhole>(v, piece, call.residual);
  }
}

// `lanes` threads of a warp share a block of up to 8 elements each.
template <class Form, bool kFeedback, bool kWhole>
__global__ void __launch_bounds__(kThreads, kFeedback ? Form::kResidentFed : Form::kResident)
    EncodeSmallKernel(Guard guard, EncodeCall call, unsigned lanes) {
  if (guard.Closed()) return;
  const int shift = __ffs(static_cast<int>(lanes)) - 1;  // a power of two
  const unsigned lane = threadIdx.x & (lanes - 1);
  // Threads of a warp stay together.
  const std::size_t before = threadIdx.x % kWarp >> shift;
  for (std::size_t first = (FirstItem() >> shift) - before; first < call.blocks;
       first += ItemStride() >> shift) {
    const std::size_t b = first + before;
    const std::size_t begin = b * call.block + lane * kPiece;
    const std::size_t end = b < call.blocks ? min((b + 1) * call.block, call.n) : 0;
    const Piece piece = {
        begin, begin < end ? static_cast<unsigned>(min(end - begin, std::size_t{kPiece})) : 0};
    const Values v = LoadValues<kFeedback, kWhole>(call, piece);
    const float scale = Form::SmallScale(v, lanes);
    if (lane == 0 && b < call.blocks) call.scales[b] = scale;
    EncodeValues<Form, kFeedback, kWhole>(call, piece, Scaling(scale, call.largest), v);
  }
}

template <bool kFeedback, bool kWhole>
__device__ void LoadTile(const EncodeCall& call, const Tile& tile) {
#pragma unroll
  for (unsigned k = 0; k < kTilePieces; ++k)
    tile.ValuesAt(k) = LoadValues<kFeedback, kWhole>(call, tile.At(k));
}

template <class Form, bool kFeedback, bool kWhole>
__device__ void EncodeTile(const EncodeCall& call, const Tile& tile, const Scaling& scaling) {
  for (unsigned k = 0; k < kTilePieces && tile.At(k).count > 0; ++k)
    EncodeValues<Form, kFeedback, kWhole>(call, tile.At(k), scaling, tile.ValuesAt(k));
}

// `threads` threads share a block of up to 32 elements each.
template <class Form, bool kFeedback, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    EncodeTileKernel(Guard guard, EncodeCall call, unsigned threads) {
  if (guard.Closed()) return;
  __shared__ alignas(16) float values[kTile];
  const unsigned at_once = kThreads / threads;
  const unsigned which = threadIdx.x / threads;
  Tile tile = {.threads = threads,
               .thread = threadIdx.x % threads,
               .values = values + which * (kTile / at_once)};
  for (std::size_t first = std::size_t{blockIdx.x} * at_once; first < call.blocks;
       first += std::size_t{gridDim.x} * at_once) {
    const std::size_t b = first + which;
    const bool any = b < call.blocks;
    tile.begin = b * call.block;
    tile.size = any ? static_cast<unsigned>(min(call.block, call.n - tile.begin)) : 0;
    LoadTile<kFeedback, kWhole>(call, tile);
    const float scale = Form::TileScale(tile);
    if (tile.thread == 0 && any) call.scales[b] = scale;
    EncodeTile<Form, kFeedback, kWhole>(call, tile, Scaling(scale, call.largest));
  }
}

// --- blocks longer than a tile

// Calls body(b, tile) for slices that make up all blocks. Whole blocks of threads call it.
template <class Body>
__device__ void ForSlices(const EncodeCall& call, float* values, const Body& body) {
  const std::size_t slices = BlockCount(call.block, kTile);
  for (std::size_t i = blockIdx.x; i < call.blocks * slices; i += gridDim.x) {
    const std::size_t b = i / slices;
    const std::size_t begin = b * call.block + i % slices * kTile;
    const std::size_t end = min((b + 1) * call.block, call.n);
    if (begin >= end) continue;
    body(b, Tile{.begin = begin,
                 .size = static_cast<unsigned>(min(end - begin, std::size_t{kTile})),
                 .threads = kThreads,
                 .thread = threadIdx.x,
                 .values = values});
  }
}

// With error feedback, the residual becomes residual + x.
template <bool kFeedback, bool kWhole>
__device__ void LoadSlice(const EncodeCall& call, const Tile& tile) {
  LoadTile<kFeedback, kWhole>(call, tile);
  if constexpr (kFeedback) {
    for (unsigned k = 0; k < kTilePieces && tile.At(k).count > 0; ++k)
      StoreValues<kWhole>(tile.ValuesAt(k), tile.At(k), call.residual);
  }
}

// The codes, once the scales are known, of x or of what the residual has become.
template <class Form, bool kFeedback, bool kWhole>
__global__ void __launch_bounds__(kThreads) EncodeSlicesKernel(Guard guard, EncodeCall call) {
  if (guard.Closed()) return;
  EncodeCall from = call;
  if constexpr (kFeedback) from.x = call.residual;
  ForSlices(call, nullptr, [&](std::size_t b, const Tile& tile) {
    const Scaling scaling(call.scales[b], call.largest);
#pragma unroll 2
    for (unsigned k = 0; k < kTilePieces; ++k)
      EncodeValues<Form, kFeedback, kWhole>(call, tile.At(k), scaling,
                                            LoadValues<false, kWhole>(from, tile.At(k)));
  });
}

inline unsigned BlocksForSlices(const Backend& backend, const EncodeCall& call) {
  return BlocksFor(backend, call.blocks * BlockCount(call.block, kTile), 1);
}

// --- launches

template <class Form, bool kFeedback, bool kWhole>
void EncodeWith(const Backend& backend, const EncodeCall& call) {
  const auto pieces =
      static_cast<unsigned>(BlockCount(std::min<std::size_t>(call.block, kTile), kPiece));
  if (call.block <= kSmall) {
    const unsigned lanes = std::max(std::bit_ceil(pieces), Form::kFewestLanes);
    Launch(backend, "encode small blocks", BlocksFor(backend, call.blocks, kThreads / lanes),
           kThreads, EncodeSmallKernel<Form, kFeedback, kWhole>, call, lanes);
  } else if (call.block <= kTile) {
    const unsigned threads = std::max(std::bit_ceil(pieces) / kTilePieces, kWarp);
    Launch(backend, "encode blocks", BlocksFor(backend, call.blocks, kThreads / threads), kThreads,
           EncodeTileKernel<Form, kFeedback, kWhole>, call, threads);
  } else {
    Form::template FindScales<kFeedback, kWhole>(backend, call);
    Launch(backend, "encode long blocks", BlocksForSlices(backend, call), kThreads,
           EncodeSlicesKernel<Form, kFeedback, kWhole>, call);
  }
}

template <class Form>
void EncodeBlocks(const Backend& backend, EncodeCall call) {
  if (call.n == 0) return;
  call.block = std::min(call.block, call.n);
  const bool whole = (call.block % kPiece == 0 || call.block == call.n) &&
                     Aligned(call.x, call.residual) &&
                     reinterpret_cast<std::uintptr_t>(call.codes) % Form::kBits == 0;
  const auto encode =
      call.residual != nullptr
          ? (whole ? EncodeWith<Form, true, true> : EncodeWith<Form, true, false>)
          : (whole ? EncodeWith<Form, false, true> : EncodeWith<Form, false, false>);
  encode(backend, call);
}

}  // namespace slimgrad::kernels::cuda
