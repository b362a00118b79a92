#include "kernels/sign_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu_bits.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_saturate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sign_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// A block's LaneSums in fp32: of the members >= 0 and of those below, or of all magnitudes (up).
struct BlockSums {
  float up = 0;
  float down = 0;
  std::size_t positive = 0;  // how many members are >= 0
};

// The mean of `count` members, of which `sum` is the fp32 LaneSum.
template <class Member>
HWY_NOINLINE float MeanOf(float sum, std::size_t count, std::size_t n, const Member& member) {
  if (count == 0) return 0;
  if (std::isfinite(sum)) return sum / static_cast<float>(count);
  return SaturateToFloat(LaneSum<double>(0, n, member) / static_cast<double>(count));
}

template <bool kTwo>
HWY_NOINLINE Levels CarefulMeans(const BlockSums& sums, const float* x, std::size_t n) {
  if constexpr (kTwo) {
    return {
        MeanOf(sums.up, sums.positive, n, [x](std::size_t i) { return x[i] >= 0 ? x[i] : 0.0F; }),
        MeanOf(sums.down, n - sums.positive, n,
               [x](std::size_t i) { return x[i] >= 0 ? 0.0F : x[i]; })};
  } else {
    const float scale = MeanOf(sums.up, n, n, [x](std::size_t i) { return std::fabs(x[i]); });
    return {scale, -scale};
  }
}

// What is encoded: x; or with error feedback the sum of residual and x, which is left in residual.
struct Plain {
  const float* x;

  HWY_INLINE VF Take(std::size_t i) const { return hn::LoadU(kF32, x + i); }
  float TakeOne(std::size_t i) const { return x[i]; }
};
struct Fed {
  const float* x;
  float* residual;

  HWY_INLINE VF Take(std::size_t i) const {
    const VF sum = hn::LoadU(kF32, residual + i) + hn::LoadU(kF32, x + i);
    hn::StoreU(sum, kF32, residual + i);
    return sum;
  }
  float TakeOne(std::size_t i) const { return residual[i] = residual[i] + x[i]; }
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
    bits |= BitsOf(IsPositive(source.Take(i + v * kLanes))) << (v * kLanes);
  });
  return bits;
}

// The same, and adds the elements to the lanes of their sums.
template <bool kTwo, class Source>
HWY_INLINE std::uint64_t AddGroup(const Source& source, std::size_t i, VF (&up)[kGroupVectors],
                                  VF (&down)[kGroupVectors]) {
  std::uint64_t bits = 0;
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const VF x = source.Take(i + v * kLanes);
    const auto positive = IsPositive(x);
    bits |= BitsOf(positive) << (v * kLanes);
    if constexpr (kTwo && kLanes == 16) {  // the same in one masked instruction each
      up[v] = hn::IfThenElse(positive, up[v] + x, up[v]);
      down[v] = hn::IfThenElse(positive, down[v], down[v] + x);
    } else if constexpr (kTwo) {
      up[v] = up[v] + hn::IfThenElseZero(positive, x);
      down[v] = down[v] + hn::IfThenZeroElse(positive, x);
    } else {
      up[v] = up[v] + hn::Abs(x);
    }
  });
  return bits;
}

template <class Source>
HWY_INLINE Padded<float> PartOf(const Source& source, std::size_t i, std::size_t count) {
  Padded<float> part;
  for (std::size_t j = 0; j < count; ++j) part.at[j] = source.TakeOne(i + j);
  return part;
}

constexpr std::uint64_t LowBits(std::size_t count) { return (std::uint64_t{1} << count) - 1; }

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
  sums.up += TreeSum(up);
  if (kTwo) sums.down += TreeSum(down);
}

template <bool kTwo, class Source>
HWY_INLINE BlockSums SumBlock(const Source& source, std::size_t n, BitWriter& bits) {
  BlockSums sums;
  for (std::size_t run = 0; run < n; run += std::min(kSumBlock, n - run))
    SumRun<kTwo>(source, run, run + std::min(kSumBlock, n - run), bits, sums);
  return sums;
}

// residual = what the levels leave over. From its end, since that is what the first-level cache
// still has of a block that has just been read.
HWY_INLINE void SubtractLevels(Levels levels, std::size_t n, float* residual) {
  const VF up = hn::Set(kF32, levels.up);
  const VF down = hn::Set(kF32, levels.down);
  std::size_t i = n;
  for (; i % kGroup != 0; --i) {
    const float p = residual[i - 1];
    residual[i - 1] = p - (p >= 0 ? levels.up : levels.down);
  }
  for (; i > 0; i -= kGroup) {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      float* at = residual + i - (v + 1) * kLanes;
      const VF p = hn::LoadU(kF32, at);
      hn::StoreU(p - hn::IfThenElse(IsPositive(p), up, down), kF32, at);
    });
  }
}

HWY_INLINE bool AreFinite(const BlockSums& sums) {
  return std::isfinite(sums.up) && std::isfinite(sums.down);
}

template <bool kTwo>
HWY_INLINE Levels MeansOf(const BlockSums& sums, const float* x, std::size_t n) {
  const std::size_t positive = kTwo ? sums.positive : n;
  if (HWY_UNLIKELY(!AreFinite(sums) || positive == 0 || (kTwo && positive == n)))
    return CarefulMeans<kTwo>(sums, x, n);
  const float up = sums.up / static_cast<float>(positive);
  return {up, kTwo ? sums.down / static_cast<float>(n - positive) : -up};
}

template <bool kTwo>
HWY_INLINE Levels EncodeBlock(const float* x, std::size_t n, BitWriter& bits) {
  return MeansOf<kTwo>(SumBlock<kTwo>(Plain{x}, n, bits), x, n);
}

// Where a sum of residual and x has overflowed, or the sum of those.
template <bool kTwo>
HWY_NOINLINE Levels SaturateBlock(std::size_t n, float* residual, BitWriter& bits) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < n; ++i) residual[i] = std::clamp(residual[i], -kMax, kMax);
  return EncodeBlock<kTwo>(residual, n, bits);
}

template <bool kTwo>
HWY_INLINE Levels FeedbackBlock(const float* x, float* residual, std::size_t n, BitWriter& bits) {
  const BitWriter start = bits;
  const BlockSums sums = SumBlock<kTwo>(Fed{x, residual}, n, bits);
  Levels levels;
  // A member that is infinite makes its sum so.
  if (HWY_LIKELY(AreFinite(sums))) {
    levels = MeansOf<kTwo>(sums, residual, n);
  } else {
    bits = start;
    levels = SaturateBlock<kTwo>(n, residual, bits);
  }
  SubtractLevels(levels, n, residual);
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
  const auto encode = HWY_DYNAMIC_DISPATCH(OneBitBlocks);
  ForBlocks(backend, x.size(), block, [&](const Blocks& blocks) {
    encode(blocks, x.data(), residual, bits.data(), positive.data(), negative.data());
  });
}

void EncodeScaledSign(const Backend& backend, In x, float* residual, std::size_t block,
                      std::span<std::uint8_t> bits, Out scale) {
  const auto encode = HWY_DYNAMIC_DISPATCH(ScaledSignBlocks);
  ForBlocks(backend, x.size(), block, [&](const Blocks& blocks) {
    encode(blocks, x.data(), residual, bits.data(), scale.data());
  });
}

}  // namespace

void SignPack(const Backend& backend, In x, std::span<std::uint8_t> bits) {
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
  EncodeOneBit(backend, x, residual.data(), block, bits, positive, negative);
}

void ScaledSignEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale) {
  EncodeScaledSign(backend, x, nullptr, block, bits, scale);
}

void ScaledSignEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                              std::span<std::uint8_t> bits, Out scale) {
  EncodeScaledSign(backend, x, residual.data(), block, bits, scale);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
