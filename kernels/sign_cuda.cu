// Bytes an element, of what must be moved and of what is: SignPack and Encode 4.125, EncodeFeedback
// 12.125, and the levels. One pass each, for blocks of up to kSignTile elements: a block of threads
// has its elements in shared memory. Longer blocks, and the few sizes whose blocks do not end with
// a byte, are the passes of sign_long_cuda.cu.
#include <bit>
#include <numeric>

#include "kernels/cuda_lane_sum.cuh"
#include "kernels/cuda_sign.cuh"

namespace slimgrad::kernels::cuda {
namespace {

constexpr std::uint32_t kMostBlocks = 256;  // of a tile

// A tile's blocks, whole but for the tensor's last. It begins with a byte of bits.
struct Tiles {
  BlockSize block;
  std::uint32_t blocks = 0;     // of a tile; 0: there is no such tile
  std::uint32_t elements = 0;   // of a tile
  std::uint32_t group = kWarp;  // threads that sum a block

  // Every block of n elements.
  Tiles(std::size_t n, std::size_t size) : block(size) {
    if (size > kSignTile) return;
    const auto unit = static_cast<std::uint32_t>(8 / std::gcd(std::size_t{8}, size));
    blocks = std::min(kMostBlocks, kSignTile / static_cast<std::uint32_t>(size)) / unit * unit;
    if (size >= n) blocks = 1;
    elements = blocks * static_cast<std::uint32_t>(size);
    group = std::min(kWarp, std::bit_ceil(static_cast<unsigned>(size)));
  }
};

// Sums and levels of the tile's blocks, a group of threads each. Whole blocks call it; p is what
// was read of `count` elements.
template <bool kTwo>
__device__ void SumBlocks(const Tiles& tiles, const float* p, std::uint32_t count, Levels* levels) {
  const auto size = static_cast<std::uint32_t>(tiles.block.size);
  const std::uint32_t blocks = (count + size - 1) / size;
  const std::uint32_t groups = kThreads / tiles.group;
  // A warp's groups go on together, if only to shuffle.
  for (std::uint32_t first = WarpOfBlock() * kWarp / tiles.group; first < blocks; first += groups) {
    const std::uint32_t b = first + Lane() / tiles.group;
    const float* x = p + b * size;
    const std::uint32_t n = b < blocks ? min(size, count - b * size) : 0;
    float up[2] = {0, 0}, down[2] = {0, 0};
    std::uint32_t positive = 0;
    ForGroup(tiles.group, n, [&](int half, std::uint32_t i) {
      up[half] += UpOf<kTwo>(x[i]);
      if constexpr (kTwo) {
        down[half] += DownOf(x[i]);
        positive += IsPositive(x[i]) ? 1 : 0;
      }
    });
    const float sum_up = JoinGroup(tiles.group, up[0], up[1]);
    const float sum_down = kTwo ? JoinGroup(tiles.group, down[0], down[1]) : 0;
    positive = kTwo ? JoinGroup(tiles.group, positive, 0U) : n;
    double wide_up = 0;
    double wide_down = 0;
    if (__any_sync(~0U, !IsFinite(sum_up) || !IsFinite(sum_down))) {
      wide_up =
          GroupRunSum<double>(tiles.group, n, [x](std::uint32_t i) { return UpOf<kTwo>(x[i]); });
      if constexpr (kTwo)
        wide_down =
            GroupRunSum<double>(tiles.group, n, [x](std::uint32_t i) { return DownOf(x[i]); });
    }
    if (n == 0 || threadIdx.x % tiles.group != 0) continue;
    const float mean = MeanOf(sum_up, wide_up, positive);
    levels[b] = {mean, kTwo ? MeanOf(sum_down, wide_down, n - positive) : -mean};
  }
}

// residual = what the tile's levels leave over of p.
template <bool kPacked>
__device__ void SubtractLevels(const BlockSize& block, const Levels* levels, const float* p,
                               std::uint32_t count, float* residual) {
  const bool in_fours = block.size % 4 == 0;
  ForTile<kPacked>(
      count, [&]<int kWidth>(std::uint32_t i) { return LoadPack<kWidth>(p + i); },
      [&]<int kWidth>(std::uint32_t i, Pack<float, kWidth> values) {
        Levels level = levels[block.Quotient(i)];
        for (int k = 0; k < kWidth; ++k) {
          if (k > 0 && !in_fours) level = levels[block.Quotient(i + k)];
          values.at[k] = values.at[k] - (IsPositive(values.at[k]) ? level.up : level.down);
        }
        StorePack(values, residual + i);
      });
}

// A block of threads for each tile.
template <bool kTwo, class Source, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    TilesKernel(Guard guard, Source source, std::size_t n, Tiles tiles, std::uint8_t* bits,
                float* up, float* down) {
  if (guard.Closed()) return;
  __shared__ alignas(16) float p[kSignTile];
  __shared__ Levels levels[kMostBlocks];
  const std::size_t begin = std::size_t{blockIdx.x} * tiles.elements;
  const auto count = static_cast<std::uint32_t>(std::min(n - begin, std::size_t{tiles.elements}));
  PutBits<kPacked>(
      source, begin, count,
      [&]<int kWidth>(std::uint32_t i, const Pack<float, kWidth>& values) {
        StorePack(values, p + i);
      },
      bits + begin / 8);
  __syncthreads();
  SumBlocks<kTwo>(tiles, p, count, levels);
  __syncthreads();
  const std::size_t first = std::size_t{blockIdx.x} * tiles.blocks;
  for (std::uint32_t b = threadIdx.x; b * tiles.block.size < count; b += kThreads) {
    up[first + b] = levels[b].up;
    if constexpr (kTwo) down[first + b] = levels[b].down;
  }
  if constexpr (Source::kFeedback)
    SubtractLevels<kPacked>(tiles.block, levels, p, count, source.residual + begin);
}

// All the threads that a multiprocessor holds: there is nothing but memory to wait for.
template <bool kPacked>
__global__ void __launch_bounds__(kThreads, 8)
    PackKernel(Guard guard, Plain source, std::size_t n, std::uint8_t* bits) {
  if (guard.Closed()) return;
  for (std::size_t begin = std::size_t{blockIdx.x} * kSignTile; begin < n;
       begin += std::size_t{gridDim.x} * kSignTile) {
    PutBits<kPacked>(
        source, begin, static_cast<std::uint32_t>(std::min(n - begin, std::size_t{kSignTile})),
        []<int kWidth>(std::uint32_t, const Pack<float, kWidth>&) {}, bits + begin / 8);
  }
}

// `down` is null where its level is -up.
template <bool kTwo, class Source>
void Encode(const Backend& backend, const Source& source, std::size_t n, std::size_t block,
            std::span<std::uint8_t> bits, float* up, float* down) {
  if (n == 0) return;
  block = std::min(block, n);
  const Tiles tiles(n, block);
  if (tiles.blocks == 0) return EncodeLong<kTwo>(backend, source, n, block, bits, up, down);
  Launch(backend, "encode signs", BlockEach(BlockCount(n, tiles.elements)), kThreads,
         AlignedSource(source) ? TilesKernel<kTwo, Source, true> : TilesKernel<kTwo, Source, false>,
         source, n, tiles, bits.data(), up, down);
}

}  // namespace

void SignPack(const Backend& backend, In x, std::span<std::uint8_t> bits) {
  if (x.empty()) return;
  const Plain source{x.data()};
  Launch(backend, "pack signs", BlocksFor(backend, x.size(), kSignTile), kThreads,
         AlignedSource(source) ? PackKernel<true> : PackKernel<false>, source, x.size(),
         bits.data());
}

void OneBitEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                  Out positive, Out negative) {
  Encode<true>(backend, Plain{x.data()}, x.size(), block, bits, positive.data(), negative.data());
}

void OneBitEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                          std::span<std::uint8_t> bits, Out positive, Out negative) {
  Encode<true>(backend, Fed{x.data(), residual.data()}, x.size(), block, bits, positive.data(),
               negative.data());
}

void ScaledSignEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale) {
  Encode<false>(backend, Plain{x.data()}, x.size(), block, bits, scale.data(), nullptr);
}

void ScaledSignEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                              std::span<std::uint8_t> bits, Out scale) {
  Encode<false>(backend, Fed{x.data(), residual.data()}, x.size(), block, bits, scale.data(),
                nullptr);
}

}  // namespace slimgrad::kernels::cuda
