// The code of indices on a GPU. A first kernel measures pieces of the input, one a block; in a
// second one each block adds up what lies before its piece, and writes. A code comes from other
// ranks: nothing is written unless all pieces are well-formed.
//
// Bytes: DeltaEncode 4 for each index, and its code; DeltaDecode the code, and 4 for each index.
// That must be moved; what is more is a second reading of the input, mostly from the L2 cache.
#include "core/check.h"
#include "kernels/cuda_block.cuh"
#include "kernels/index_code.h"

namespace slimgrad::kernels::cuda {
namespace {

// What a block found in its piece.
struct Piece {
  std::uint64_t items;  // bytes of the code, or indices
  std::uint64_t sum;    // of gaps, each and 1
  std::uint64_t wrong;
};

constexpr unsigned kMostPieces = 1024;

// A code's bytes, and whether indices ascend.
struct Length {
  std::uint64_t bytes;
  std::uint64_t wrong;
};

struct Pieces {
  Piece* at;
  unsigned count;
};

// The pieces before this block's, and all of them. Whole blocks call it.
struct PieceSums {
  Piece before;
  Piece all;
};
__device__ PieceSums SumPieces(const Pieces& pieces) {
  Piece before = {};
  Piece all = {};
  for (unsigned p = threadIdx.x; p < pieces.count; p += kThreads) {
    const Piece piece = pieces.at[p];
    if (p < blockIdx.x) {
      before.items += piece.items;
      before.sum += piece.sum;
    }
    all.items += piece.items;
    all.sum += piece.sum;
    all.wrong += piece.wrong;
  }
  const auto total = [](std::uint64_t value) { return BlockSum<kThreads>(value).total; };
  return {{total(before.items), total(before.sum), 0},
          {total(all.items), total(all.sum), total(all.wrong)}};
}

// Writes down what the threads of a block found. Whole blocks call it.
__device__ void StorePiece(const Pieces& pieces, const Piece& of_thread) {
  const auto total = [](std::uint64_t value) { return BlockSum<kThreads>(value).total; };
  const Piece piece = {total(of_thread.items), total(of_thread.sum), total(of_thread.wrong)};
  if (threadIdx.x == 0) pieces.at[blockIdx.x] = piece;
}

// This block's share of n items.
struct Range {
  std::size_t begin;
  std::size_t end;
};
__device__ Range RangeOf(std::size_t n) {
  const std::size_t share = (n / gridDim.x + kThreads) / kThreads * kThreads;
  return {min(n, blockIdx.x * share), min(n, (blockIdx.x + std::size_t{1}) * share)};
}

struct Gap {
  std::uint32_t value;
  unsigned bytes;
  bool wrong;
};
__device__ Gap GapAt(const std::uint32_t* indices, std::size_t j) {
  const std::uint32_t index = indices[j];
  const std::uint32_t before = j == 0 ? ~0U : indices[j - 1];
  const std::uint32_t value = index - before - 1;
  const unsigned bits = kWarp - static_cast<unsigned>(__clz(static_cast<int>(value | 1)));
  return {value, (bits + 6) / 7, j > 0 && index <= before};
}

__global__ void MeasureGapsKernel(Guard guard, const std::uint32_t* indices, std::size_t n,
                                  Pieces pieces) {
  if (guard.Closed()) return;
  Piece piece = {};
  const Range range = RangeOf(n);
  for (std::size_t j = range.begin + threadIdx.x; j < range.end; j += kThreads) {
    const Gap gap = GapAt(indices, j);
    piece.items += gap.bytes;
    piece.wrong += gap.wrong;
  }
  StorePiece(pieces, piece);
}

__device__ void PutGap(Gap gap, std::uint8_t* code) {
  for (unsigned b = 0; b < gap.bytes; ++b, gap.value >>= 7)
    code[b] = static_cast<std::uint8_t>(gap.value & 0x7FU) | (b + 1 < gap.bytes ? 0x80U : 0U);
}

__global__ void WriteGapsKernel(Guard guard, const std::uint32_t* indices, std::size_t n,
                                Pieces pieces, std::uint8_t* code, Length* length) {
  if (guard.Closed()) return;
  const PieceSums sums = SumPieces(pieces);
  if (FirstItem() == 0) *length = {sums.all.items, sums.all.wrong};
  std::uint64_t written = sums.before.items;
  const Range range = RangeOf(n);
  for (std::size_t first = range.begin; first < range.end; first += kThreads) {
    const std::size_t j = first + threadIdx.x;
    Gap gap = {};
    if (j < range.end) gap = GapAt(indices, j);
    const auto place = BlockSum<kThreads>(gap.bytes);
    PutGap(gap, code + written + place.before);
    written += place.total;
  }
}

// The gap whose last byte is at p, if one ends there; wrong if no index has it, or it is not in its
// shortest form.
struct Ending {
  bool ends;
  bool wrong;
  std::uint64_t gap;
};
__device__ Ending EndingAt(const std::uint8_t* code, std::size_t size, std::size_t p) {
  constexpr unsigned kMostBytes = 5;
  if (code[p] >= 0x80) return {false, p + 1 == size, 0};
  std::uint64_t gap = code[p];
  unsigned bytes = 1;
  for (std::size_t q = p; q > 0 && code[q - 1] >= 0x80 && bytes <= kMostBytes; --q, ++bytes)
    gap = gap << 7 | (code[q - 1] & 0x7FU);
  const bool wrong = bytes > kMostBytes || (bytes > 1 && code[p] == 0) || gap > 0xFFFFFFFF;
  return {true, wrong, wrong ? 0 : gap};
}

constexpr std::uint64_t kIndices = std::uint64_t{1} << 32;

__global__ void MeasureCodeKernel(Guard guard, const std::uint8_t* code, std::size_t size,
                                  Pieces pieces) {
  if (guard.Closed()) return;
  Piece piece = {};
  const Range range = RangeOf(size);
  for (std::size_t p = range.begin + threadIdx.x; p < range.end; p += kThreads) {
    const Ending ending = EndingAt(code, size, p);
    piece.items += ending.ends;
    piece.sum += ending.ends ? ending.gap + 1 : 0;
    // So that no sum of pieces passes 2^64.
    piece.wrong += ending.wrong || piece.sum > kIndices;
    if (piece.sum > kIndices) piece.sum = 0;
  }
  StorePiece(pieces, piece);
}

__global__ void WriteIndicesKernel(Guard guard, const std::uint8_t* code, std::size_t size,
                                   Pieces pieces, std::size_t n, std::uint32_t* indices,
                                   std::uint64_t* faults) {
  if (guard.Closed()) return;
  const PieceSums sums = SumPieces(pieces);
  if (sums.all.wrong > 0 || sums.all.items != n || sums.all.sum > kIndices) {
    if (FirstItem() == 0) atomicAdd(AsWide(faults), Wide{1});
    return;
  }
  // Both in one number: of a good code, sums need 33 bits, and counts of a step 9.
  constexpr unsigned kShift = 40;
  std::uint64_t items = sums.before.items;
  std::uint64_t sum = sums.before.sum;
  const Range range = RangeOf(size);
  for (std::size_t first = range.begin; first < range.end; first += kThreads) {
    const std::size_t p = first + threadIdx.x;
    Ending ending = {};
    if (p < range.end) ending = EndingAt(code, size, p);
    const std::uint64_t own =
        ending.ends ? std::uint64_t{1} << kShift | (ending.gap + 1) : std::uint64_t{0};
    const auto place = BlockSum<kThreads>(own);
    const auto low = [](std::uint64_t both) { return both & ((std::uint64_t{1} << kShift) - 1); };
    if (ending.ends)
      indices[items + (place.before >> kShift)] =
          static_cast<std::uint32_t>(sum + low(place.before) + ending.gap);
    items += place.total >> kShift;
    sum += low(place.total);
  }
}

// In the stream's workspace: the length first, then the pieces.
Length* LengthIn(const Backend& backend) {
  return reinterpret_cast<Length*>(backend.cuda->workspace().data());
}
Pieces PiecesOf(const Backend& backend, std::size_t n) {
  static_assert(sizeof(Length) + kMostPieces * sizeof(Piece) <= CudaStream::kWorkspaceBytes);
  return {reinterpret_cast<Piece*>(LengthIn(backend) + 1),
          std::min(BlocksFor(backend, n, std::size_t{4} * kThreads), kMostPieces)};
}

}  // namespace

std::size_t DeltaEncode(const Backend& backend, std::span<const std::uint32_t> indices,
                        std::span<std::uint8_t> code) {
  const std::size_t n = indices.size();
  if (n == 0) return 0;
  const Pieces pieces = PiecesOf(backend, n);
  Length* const on_device = LengthIn(backend);
  // Of a call without effect, as its guard is closed, it stays 0.
  Clear(backend, on_device, sizeof *on_device);
  Launch(backend, "measuring gaps", pieces.count, kThreads, MeasureGapsKernel, indices.data(), n,
         pieces);
  Launch(backend, "writing gaps", pieces.count, kThreads, WriteGapsKernel, indices.data(), n,
         pieces, code.data(), on_device);
  Length length = {};
  backend.memory->Read(&length, on_device, sizeof length);
  SLIMGRAD_CHECK(length.wrong == 0);
  return length.bytes;
}

Status DeltaDecode(const Backend& backend, std::span<const std::uint8_t> code,
                   std::span<std::uint32_t> indices) {
  const std::size_t n = indices.size();
  if (code.size() < n || code.size() > DeltaBound(n))
    return Corrupt("delta code: expected " + std::to_string(n) + " to " +
                   std::to_string(DeltaBound(n)) + " bytes, found " + std::to_string(code.size()));
  if (n == 0) return {};
  const Pieces pieces = PiecesOf(backend, code.size());
  Launch(backend, "measuring a code", pieces.count, kThreads, MeasureCodeKernel, code.data(),
         code.size(), pieces);
  Launch(backend, "writing indices", pieces.count, kThreads, WriteIndicesKernel, code.data(),
         code.size(), pieces, n, indices.data(), backend.cuda->faults());
  return {};
}

}  // namespace slimgrad::kernels::cuda
