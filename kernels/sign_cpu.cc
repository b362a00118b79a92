#include "kernels/sign_cpu.h"

#include <cmath>
#include <type_traits>

#include "core/check.h"
#include "kernels/cpu_bits.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_saturate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sign_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

#ifndef SLIMGRAD_KERNELS_SIGN_CPU_ONCE_
#define SLIMGRAD_KERNELS_SIGN_CPU_ONCE_
namespace slimgrad::kernels::cpu {
namespace {

// A block's LaneSums in fp32: of the members >= 0 and of those below, or of all magnitudes (up).
struct BlockSums {
  float up = 0;
  float down = 0;
  std::size_t positive = 0;  // how many members are >= 0
};

// The mean of `count` members, of which `sum` is the fp32 LaneSum.
template <class Member>
float Mean(float sum, std::size_t count, std::size_t n, const Member& member) {
  if (count == 0) return 0;
  if (std::isfinite(sum)) return sum / static_cast<float>(count);
  return SaturateToFloat(LaneSum<double>(0, n, member) / static_cast<double>(count));
}

template <bool kTwo>
Levels MeansOf(const BlockSums& sums, const float* x, std::size_t n) {
  if constexpr (kTwo) {
    return {Mean(sums.up, sums.positive, n, [x](std::size_t i) { return x[i] >= 0 ? x[i] : 0.0F; }),
            Mean(sums.down, n - sums.positive, n,
                 [x](std::size_t i) { return x[i] >= 0 ? 0.0F : x[i]; })};
  } else {
    const float scale = Mean(sums.up, n, n, [x](std::size_t i) { return std::fabs(x[i]); });
    return {scale, -scale};
  }
}

}  // namespace
}  // namespace slimgrad::kernels::cpu
#endif  // SLIMGRAD_KERNELS_SIGN_CPU_ONCE_

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// What is encoded: x, or with error feedback the sum of residual and x; formed again each time,
// since both stay in the caches while a block is worked on.
struct Plain {
  const float* x;

  HWY_INLINE VF At(std::size_t i) const { return hn::LoadU(kF32, x + i); }
  float One(std::size_t i) const { return x[i]; }
};
struct Fed {
  const float* x;
  const float* residual;

  HWY_INLINE VF At(std::size_t i) const {
    return hn::LoadU(kF32, residual + i) + hn::LoadU(kF32, x + i);
  }
  float One(std::size_t i) const { return residual[i] + x[i]; }
};

HWY_INLINE std::uint64_t BitsOf(hn::Mask<DF> mask) {
  std::conditional_t<kLanes == 16, std::uint16_t, std::uint8_t> bits = 0;
  hn::StoreMaskBits(kF32, mask, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

HWY_INLINE hn::Mask<DF> IsPositive(VF x) { return hn::Ge(x, hn::Zero(kF32)); }

// The bits of elements i ... i + 63.
template <class Source>
HWY_INLINE std::uint64_t GroupBits(const Source& source, std::size_t i) {
  std::uint64_t bits = 0;
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    bits |= BitsOf(IsPositive(source.At(i + v * kLanes))) << (v * kLanes);
  });
  return bits;
}

// The same, and adds the elements to the lanes of their sums.
template <bool kTwo, class Source>
HWY_INLINE std::uint64_t AddGroup(const Source& source, std::size_t i, VF (&up)[kGroupVectors],
                                  VF (&down)[kGroupVectors]) {
  std::uint64_t bits = 0;
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const VF x = source.At(i + v * kLanes);
    const auto positive = IsPositive(x);
    bits |= BitsOf(positive) << (v * kLanes);
    up[v] = up[v] + (kTwo ? hn::IfThenElseZero(positive, x) : hn::Abs(x));
    if constexpr (kTwo) down[v] = down[v] + hn::IfThenZeroElse(positive, x);
  });
  return bits;
}

template <class Source>
HWY_INLINE Padded<float> PartOf(const Source& source, std::size_t i, std::size_t count) {
  Padded<float> part;
  for (std::size_t j = 0; j < count; ++j) part.at[j] = source.One(i + j);
  return part;
}

constexpr std::uint64_t LowBits(std::size_t count) { return (std::uint64_t{1} << count) - 1; }

// The tree of a LaneSum.
HWY_INLINE float JoinLanes(VF (&lanes)[kGroupVectors]) {
  for (std::size_t width = kGroupVectors / 2; width > 0; width /= 2)
    for (std::size_t v = 0; v < width; ++v) lanes[v] = lanes[v] + lanes[v + width];
  HWY_ALIGN_MAX float lane[kLanes];
  hn::Store(lanes[0], kF32, lane);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2)
    for (std::size_t l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// Writes the bits of a run and adds its sums to those of the block.
template <bool kTwo, class Source>
HWY_INLINE void SumRun(const Source& source, std::size_t begin, std::size_t end, BitWriter& bits,
                       BlockSums& sums) {
  VF up[kGroupVectors], down[kGroupVectors];
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR { up[v] = down[v] = hn::Zero(kF32); });
  std::size_t i = begin;
  for (; end - i >= kGroup; i += kGroup) {
    const std::uint64_t word = AddGroup<kTwo>(source, i, up, down);
    if (kTwo) sums.positive += hwy::PopCount(word);
    bits.PutGroup(word);
  }
  if (i < end) {
    const Padded<float> part = PartOf(source, i, end - i);
    const std::uint64_t word = AddGroup<kTwo>(Plain{part.at}, 0, up, down) & LowBits(end - i);
    if (kTwo) sums.positive += hwy::PopCount(word);
    bits.Put(word, end - i);
  }
  sums.up += JoinLanes(up);
  if (kTwo) sums.down += JoinLanes(down);
}

template <bool kTwo, class Source>
HWY_INLINE BlockSums SumBlock(const Source& source, std::size_t n, BitWriter& bits) {
  BlockSums sums;
  for (std::size_t run = 0; run < n; run += std::min(kSumBlock, n - run))
    SumRun<kTwo>(source, run, run + std::min(kSumBlock, n - run), bits, sums);
  return sums;
}

// residual = what the levels leave over.
template <class Source>
HWY_INLINE void SubtractLevels(const Source& source, std::size_t n, Levels levels,
                               float* residual) {
  const VF up = hn::Set(kF32, levels.up);
  const VF down = hn::Set(kF32, levels.down);
  std::size_t i = 0;
  for (; n - i >= kGroup; i += kGroup) {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      const VF x = source.At(i + v * kLanes);
      hn::StoreU(x - hn::IfThenElse(IsPositive(x), up, down), kF32, residual + i + v * kLanes);
    });
  }
  for (; i < n; ++i) {
    const float x = source.One(i);
    residual[i] = x - (x >= 0 ? levels.up : levels.down);
  }
}

template <bool kTwo>
HWY_INLINE Levels EncodeBlock(const float* x, std::size_t n, BitWriter& bits) {
  return MeansOf<kTwo>(SumBlock<kTwo>(Plain{x}, n, bits), x, n);
}

template <bool kTwo>
HWY_NOINLINE Levels SaturatedBlock(const float* x, float* residual, std::size_t n,
                                   BitWriter& bits) {
  for (std::size_t i = 0; i < n; ++i) residual[i] = SaturatedSum(residual[i], x[i]);
  const Levels levels = EncodeBlock<kTwo>(residual, n, bits);
  SubtractLevels(Plain{residual}, n, levels, residual);
  return levels;
}

template <bool kTwo>
HWY_INLINE Levels FeedbackBlock(const float* x, float* residual, std::size_t n, BitWriter& bits) {
  const Fed source{x, residual};
  const BitWriter start = bits;
  const BlockSums sums = SumBlock<kTwo>(source, n, bits);
  // A member that overflowed is infinite, and so is its sum.
  if (HWY_UNLIKELY(!std::isfinite(sums.up) || !std::isfinite(sums.down))) {
    bits = start;
    return SaturatedBlock<kTwo>(x, residual, n, bits);
  }
  const Levels levels = MeansOf<kTwo>(sums, x, n);
  SubtractLevels(source, n, levels, residual);
  return levels;
}

// `down` is null where its level is -up.
template <bool kTwo>
HWY_INLINE void EncodeBlocks(const Blocks& blocks, const float* x, float* residual,
                             std::uint8_t* bits, float* up, float* down) {
  BitWriter writer(bits + blocks.first * blocks.size / 8);
  for (std::size_t b = blocks.first; b < blocks.last; ++b) {
    const std::size_t begin = b * blocks.size;
    const std::size_t n = std::min(blocks.size, blocks.n - begin);
    const Levels levels = residual == nullptr
                              ? EncodeBlock<kTwo>(x + begin, n, writer)
                              : FeedbackBlock<kTwo>(x + begin, residual + begin, n, writer);
    up[b] = levels.up;
    if (kTwo) down[b] = levels.down;
  }
  writer.Finish();
}

void OneBitBlocks(const Blocks& blocks, const float* x, float* residual, std::uint8_t* bits,
                  float* positive, float* negative) {
  EncodeBlocks<true>(blocks, x, residual, bits, positive, negative);
}

void ScaledSignBlocks(const Blocks& blocks, const float* x, float* residual, std::uint8_t* bits,
                      float* scale) {
  EncodeBlocks<false>(blocks, x, residual, bits, scale, nullptr);
}

void PackRange(const float* x, std::size_t n, std::uint8_t* bits) {
  BitWriter writer(bits);
  std::size_t i = 0;
  for (; n - i >= kGroup; i += kGroup) writer.PutGroup(GroupBits(Plain{x}, i));
  if (i < n) {
    const Padded<float> part(x + i, n - i);
    writer.Put(GroupBits(Plain{part.at}, 0) & LowBits(n - i), n - i);
  }
  writer.Finish();
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(OneBitBlocks);
HWY_EXPORT(ScaledSignBlocks);
HWY_EXPORT(PackRange);

void EncodeOneBit(const Backend& backend, In x, float* residual, std::size_t block,
                  std::span<std::uint8_t> bits, Out positive, Out negative) {
  SLIMGRAD_CHECK(block > 0 && bits.size() == BitBytes(x.size()));
  SLIMGRAD_CHECK(positive.size() == BlockCount(x.size(), block) &&
                 negative.size() == positive.size());
  const auto encode = HWY_DYNAMIC_DISPATCH(OneBitBlocks);
  ForBlocks(backend, x.size(), block, [&](const Blocks& blocks) {
    encode(blocks, x.data(), residual, bits.data(), positive.data(), negative.data());
  });
}

void EncodeScaledSign(const Backend& backend, In x, float* residual, std::size_t block,
                      std::span<std::uint8_t> bits, Out scale) {
  SLIMGRAD_CHECK(block > 0 && bits.size() == BitBytes(x.size()));
  SLIMGRAD_CHECK(scale.size() == BlockCount(x.size(), block));
  const auto encode = HWY_DYNAMIC_DISPATCH(ScaledSignBlocks);
  ForBlocks(backend, x.size(), block, [&](const Blocks& blocks) {
    encode(blocks, x.data(), residual, bits.data(), scale.data());
  });
}

}  // namespace

void SignPack(const Backend& backend, In x, std::span<std::uint8_t> bits) {
  SLIMGRAD_CHECK(bits.size() == BitBytes(x.size()));
  const auto pack = HWY_DYNAMIC_DISPATCH(PackRange);
  ForElements(backend, x.size(), [&](std::size_t begin, std::size_t end) {
    pack(x.data() + begin, end - begin, bits.data() + begin / 8);
  });
}

void OneBitEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                  Out positive, Out negative) {
  EncodeOneBit(backend, x, nullptr, block, bits, positive, negative);
}

void OneBitEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                          std::span<std::uint8_t> bits, Out positive, Out negative) {
  SLIMGRAD_CHECK(residual.size() == x.size());
  EncodeOneBit(backend, x, residual.data(), block, bits, positive, negative);
}

void ScaledSignEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale) {
  EncodeScaledSign(backend, x, nullptr, block, bits, scale);
}

void ScaledSignEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                              std::span<std::uint8_t> bits, Out scale) {
  SLIMGRAD_CHECK(residual.size() == x.size());
  EncodeScaledSign(backend, x, residual.data(), block, bits, scale);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
