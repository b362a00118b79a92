// EncodeLong of cuda_sign.cuh, in three passes. Bytes an element, beside 4.125 and 12.125 that must
// be moved without and with error feedback: 8.125 and 20.125, since the levels are known once all
// was read.
//   RunsKernel    reads all: the sums of runs
//   LevelsKernel  a block's sums and levels
//   SignPack, or FeedbackKernel, reads all again: bits and residual
// The runs' sums lie in the memory of the bits, which the last pass overwrites.
#include "core/check.h"
#include "kernels/cuda_lane_sum.cuh"
#include "kernels/cuda_sign.cuh"

namespace slimgrad::kernels::cuda {
namespace {

struct RunSums {
  float up;
  float down;
  std::uint32_t positive;
};

// How blocks are cut: `runs` runs each, of which the last block's last may have no member.
struct Cut {
  std::size_t n;
  std::size_t block;
  std::size_t runs;

  __device__ std::size_t EndOf(std::size_t b) const { return std::min(n, (b + 1) * block); }
};

// sums[b * runs + r] is run r of block b. A row of threads takes a run.
template <bool kTwo, class Source, bool kPacked>
__global__ void RunsKernel(Guard guard, Source source, Cut cut, std::size_t count, RunSums* sums) {
  if (guard.Closed()) return;
  for (std::size_t i = FirstItem() / kRowThreads; i < count; i += ItemStride() / kRowThreads) {
    const std::size_t b = i / cut.runs;
    const std::size_t begin = b * cut.block + i % cut.runs * kSumBlock;
    const std::size_t end = cut.EndOf(b);
    const std::size_t members =
        begin < end ? std::min(end - begin, std::size_t{kSumBlock}) : std::size_t{0};
    RowLanes<float> up;
    RowLanes<float> down;
    RowLanes<std::uint32_t> positive;
    ForRow<kPacked>(
        static_cast<std::uint32_t>(members),
        [&]<int kWidth>(std::uint32_t j) {
          return Source::template Sum<kWidth>(source.template Load<kWidth>(begin + j));
        },
        [&](int k, float x) {
          up.at[k] += UpOf<kTwo>(x);
          if constexpr (kTwo) {
            down.at[k] += DownOf(x);
            positive.at[k] += IsPositive(x) ? 1 : 0;
          }
        });
    const RunSums run = {up.Join(), kTwo ? down.Join() : 0, kTwo ? positive.Join() : 0};
    if (threadIdx.x % kRowThreads == 0) sums[i] = run;
  }
}

// The sums of a block, and how many of its members are positive.
struct BlockSums {
  float up;
  float down;
  std::size_t positive;
};

// The sums of runs, in order. A chain of additions, so its numbers are brought nearer first: one
// thread adds up, and one of another warp down. To all threads. Whole blocks call it, once.
template <bool kTwo>
__device__ BlockSums AddRuns(const RunSums* sums, std::size_t runs) {
  constexpr std::uint32_t kNear = 1024;
  __shared__ float near[2][kNear];
  __shared__ float totals[2];
  __shared__ Wide count;
  const bool adds = threadIdx.x == 0 || (kTwo && threadIdx.x == kWarp);
  const std::uint32_t which = threadIdx.x == 0 ? 0 : 1;
  if (threadIdx.x == 0) count = 0;
  float total = 0;
  std::uint64_t mine = 0;
  for (std::size_t first = 0; first < runs; first += kNear) {
    const auto part = static_cast<std::uint32_t>(std::min(runs - first, std::size_t{kNear}));
    for (std::uint32_t r = threadIdx.x; r < part; r += kThreads) {
      near[0][r] = sums[first + r].up;
      near[1][r] = sums[first + r].down;
      mine += sums[first + r].positive;
    }
    __syncthreads();
    if (adds) {
#pragma unroll 8
      for (std::uint32_t r = 0; r < part; ++r) total += near[which][r];
    }
    __syncthreads();
  }
  if (adds) totals[which] = total;
  if (kTwo && mine > 0) atomicAdd(&count, Wide{mine});
  __syncthreads();
  return {totals[0], kTwo ? totals[1] : 0, count};
}

// A block of threads for each block.
template <bool kTwo, class Source>
__global__ void __launch_bounds__(kThreads)
    LevelsKernel(Guard guard, Source source, Cut cut, const RunSums* sums, float* up, float* down) {
  if (guard.Closed()) return;
  const std::size_t b = blockIdx.x;
  const std::size_t begin = b * cut.block;
  const std::size_t members = cut.EndOf(b) - begin;
  const BlockSums total = AddRuns<kTwo>(sums + b * cut.runs, cut.runs);
  const auto wide = [&](auto of) {
    return BlockLaneSum<double>(members, [&](std::size_t i) -> double {
      return of(Source::template Sum<1>(source.template Load<1>(begin + i)).at[0]);
    });
  };
  double wide_up = 0;
  double wide_down = 0;
  if (!IsFinite(total.up)) wide_up = wide([](float x) { return UpOf<kTwo>(x); });
  if (!IsFinite(total.down)) wide_down = wide([](float x) { return DownOf(x); });
  if (threadIdx.x != 0) return;
  up[b] = MeanOf(total.up, wide_up, kTwo ? total.positive : members);
  if constexpr (kTwo) down[b] = MeanOf(total.down, wide_down, members - total.positive);
}

template <bool kTwo, bool kPacked>
__global__ void FeedbackKernel(Guard guard, Fed source, std::size_t n, BlockSize block,
                               const float* up, const float* down, std::uint8_t* bits) {
  if (guard.Closed()) return;
  const auto levels_at = [&](std::size_t b) { return Levels{up[b], kTwo ? down[b] : -up[b]}; };
  for (std::size_t begin = std::size_t{blockIdx.x} * kSignTile; begin < n;
       begin += std::size_t{gridDim.x} * kSignTile) {
    const TileBlocks blocks(block, begin);
    const auto visit = [&]<int kWidth>(std::uint32_t i, const Pack<float, kWidth>& p) {
      const auto levels = LevelsOf<kWidth>(blocks, i, levels_at);
      Pack<float, kWidth> rest;
      for (int k = 0; k < kWidth; ++k)
        rest.at[k] = p.at[k] - (IsPositive(p.at[k]) ? levels.at[k].up : levels.at[k].down);
      StorePack(rest, source.residual + begin + i);
    };
    PutBits<kPacked>(source, begin,
                     static_cast<std::uint32_t>(std::min(n - begin, std::size_t{kSignTile})), visit,
                     bits + begin / 8);
  }
}

// Room for the runs' sums in the bits. There is: blocks here have more than kSignTile elements, so
// 512 bytes of bits or more for two sums; or else more than kSignTile / 8, so 64 bytes for one.
RunSums* SumsIn(std::span<std::uint8_t> bits, std::size_t count) {
  const std::size_t skipped =
      (alignof(RunSums) - reinterpret_cast<std::uintptr_t>(bits.data()) % alignof(RunSums)) %
      alignof(RunSums);
  SLIMGRAD_CHECK(bits.size() >= skipped && (bits.size() - skipped) / sizeof(RunSums) >= count);
  return reinterpret_cast<RunSums*>(bits.data() + skipped);
}

}  // namespace

template <bool kTwo, class Source>
void EncodeLong(const Backend& backend, const Source& source, std::size_t n, std::size_t block,
                std::span<std::uint8_t> bits, float* up, float* down) {
  const Cut cut = {n, block, BlockCount(block, kSumBlock)};
  const std::size_t blocks = BlockCount(n, block);
  const std::size_t count = blocks * cut.runs;
  RunSums* const sums = SumsIn(bits, count);
  const bool packed = AlignedSource(source);
  constexpr unsigned kRunThreads =
      64;  // few, so that also short tensors are spread over the device
  Launch(
      backend, "sums of runs", BlocksFor(backend, count, kRunThreads / kRowThreads), kRunThreads,
      packed && block % 4 == 0 ? RunsKernel<kTwo, Source, true> : RunsKernel<kTwo, Source, false>,
      source, cut, count, sums);
  Launch(backend, "levels", BlockEach(blocks), kThreads, LevelsKernel<kTwo, Source>, source, cut,
         sums, up, down);
  if constexpr (Source::kFeedback) {
    Launch(backend, "signs with feedback", BlocksFor(backend, n, kSignTile), kThreads,
           packed ? FeedbackKernel<kTwo, true> : FeedbackKernel<kTwo, false>, source, n,
           BlockSize(block), up, down, bits.data());
  } else {
    SignPack(backend, {source.x, n}, bits);
  }
}

template void EncodeLong<true, Plain>(const Backend&, const Plain&, std::size_t, std::size_t,
                                      std::span<std::uint8_t>, float*, float*);
template void EncodeLong<false, Plain>(const Backend&, const Plain&, std::size_t, std::size_t,
                                       std::span<std::uint8_t>, float*, float*);
template void EncodeLong<true, Fed>(const Backend&, const Fed&, std::size_t, std::size_t,
                                    std::span<std::uint8_t>, float*, float*);
template void EncodeLong<false, Fed>(const Backend&, const Fed&, std::size_t, std::size_t,
                                     std::span<std::uint8_t>, float*, float*);

}  // namespace slimgrad::kernels::cuda
