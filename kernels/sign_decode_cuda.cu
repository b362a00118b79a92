// Bytes an element, of what must be moved and of what is: SignUnpack and Decode 4.125, DecodeAdd
// 8.125, and the levels. One pass each.
#include "kernels/cuda_sign.cuh"

namespace slimgrad::kernels::cuda {
namespace {

struct UnitLevels {
  __device__ Levels operator()(std::size_t) const { return {1, -1}; }
};
struct OneBitLevels {
  const float* positive;
  const float* negative;
  float weight;
  __device__ Levels operator()(std::size_t b) const {
    return {weight * positive[b], weight * negative[b]};
  }
};
struct ScaledSignLevels {
  const float* scale;
  float weight;
  __device__ Levels operator()(std::size_t b) const {
    return {weight * scale[b], weight * -scale[b]};
  }
};

template <int kWidth>
struct Coded {
  std::uint32_t word;  // its low bits
  Pack<float, kWidth> y;
};

// y = 0 + level, or y + level.
template <class LevelsAt, bool kAdd, bool kPacked>
__global__ void DecodeKernel(Guard guard, const std::uint8_t* bits, LevelsAt levels_at,
                             BlockSize block, float* y, std::size_t n) {
  if (guard.Closed()) return;
  for (std::size_t begin = std::size_t{blockIdx.x} * kSignTile; begin < n;
       begin += std::size_t{gridDim.x} * kSignTile) {
    const TileBlocks blocks(block, begin);
    const std::uint8_t* tile_bits = bits + begin / 8;
    const auto load = [&]<int kWidth>(std::uint32_t i) {
      Coded<kWidth> coded = {std::uint32_t{tile_bits[i / 8]} >> (i % 8), {}};
      if constexpr (kAdd) coded.y = LoadPack<kWidth>(y + begin + i);
      return coded;
    };
    const auto store = [&]<int kWidth>(std::uint32_t i, Coded<kWidth> coded) {
      const auto levels = LevelsOf<kWidth>(blocks, i, levels_at);
      for (int k = 0; k < kWidth; ++k)
        coded.y.at[k] += (coded.word >> k & 1) != 0 ? levels.at[k].up : levels.at[k].down;
      StorePack(coded.y, y + begin + i);
    };
    ForTile<kPacked>(static_cast<std::uint32_t>(std::min(n - begin, std::size_t{kSignTile})), load,
                     store);
  }
}

template <bool kAdd, class LevelsAt>
void DecodeAll(const Backend& backend, std::span<const std::uint8_t> bits, LevelsAt levels_at,
               std::size_t block, Out y) {
  if (y.empty()) return;
  Launch(
      backend, "decode signs", BlocksFor(backend, y.size(), kSignTile), kThreads,
      Aligned(y.data()) ? DecodeKernel<LevelsAt, kAdd, true> : DecodeKernel<LevelsAt, kAdd, false>,
      bits.data(), levels_at, BlockSize(block), y.data(), y.size());
}

template <bool kAdd>
void DecodeOneBit(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                  In negative, std::size_t block, float weight, Out y) {
  DecodeAll<kAdd>(backend, bits, OneBitLevels{positive.data(), negative.data(), weight}, block, y);
}

template <bool kAdd>
void DecodeScaledSign(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                      std::size_t block, float weight, Out y) {
  DecodeAll<kAdd>(backend, bits, ScaledSignLevels{scale.data(), weight}, block, y);
}

}  // namespace

void SignUnpack(const Backend& backend, std::span<const std::uint8_t> bits, Out y) {
  DecodeAll<false>(backend, bits, UnitLevels{}, kSignTile, y);
}

void OneBitDecode(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                  In negative, std::size_t block, float weight, Out y) {
  DecodeOneBit<false>(backend, bits, positive, negative, block, weight, y);
}

void OneBitDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                     In negative, std::size_t block, float weight, Out y) {
  DecodeOneBit<true>(backend, bits, positive, negative, block, weight, y);
}

void ScaledSignDecode(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                      std::size_t block, float weight, Out y) {
  DecodeScaledSign<false>(backend, bits, scale, block, weight, y);
}

void ScaledSignDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                         std::size_t block, float weight, Out y) {
  DecodeScaledSign<true>(backend, bits, scale, block, weight, y);
}

}  // namespace slimgrad::kernels::cuda
