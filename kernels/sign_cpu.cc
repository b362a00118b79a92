#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_ranges.h"
#include "kernels/sign.h"

namespace slimgrad::kernels::cpu {
namespace {

void EncodeBits(const Backend& backend, In x, std::span<std::uint8_t> bits) {
  // Tasks start at multiples of 8 elements, so each owns whole bytes.
  ForElements(backend, x.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += 8) {
      const std::size_t count = std::min<std::size_t>(8, end - i);
      unsigned byte = 0;
      for (std::size_t bit = 0; bit < count; ++bit)
        byte |= static_cast<unsigned>(x[i + bit] >= 0) << bit;
      bits[i / 8] = static_cast<std::uint8_t>(byte);
    }
  });
}

// Mean of member(begin) ... member(end - 1), over `count` elements that are not 0 by exclusion.
template <class Member>
float BlockMean(std::size_t begin, std::size_t end, std::size_t count, const Member& member) {
  if (count == 0) return 0;
  const float sum = LaneSum<float>(begin, end, member);
  if (std::isfinite(sum)) return sum / static_cast<float>(count);
  return SaturateToFloat(LaneSum<double>(begin, end, member) / static_cast<double>(count));
}

// Calls run(b, begin, end) for every block b and its elements.
template <class RunBlock>
void ForBlocks(const Backend& backend, std::size_t n, std::size_t block, const RunBlock& run) {
  ForItems(backend, BlockCount(n, block), block, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b)
      run(b, b * block, b * block + std::min(block, n - b * block));
  });
}

// y[i] = y[i] + (bit i ? up(b) : down(b)); the products with the weight are made once a block.
template <class Level>
void AddLevels(const Backend& backend, std::span<const std::uint8_t> bits, std::size_t block, Out y,
               const Level& up, const Level& down) {
  ForBlocks(backend, y.size(), block, [&](std::size_t b, std::size_t begin, std::size_t end) {
    const float levels[2] = {down(b), up(b)};
    for (std::size_t i = begin; i < end; ++i) y[i] = y[i] + levels[(bits[i / 8] >> (i % 8)) & 1];
  });
}

}  // namespace

void OneBitEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                  Out positive, Out negative) {
  SLIMGRAD_CHECK(block > 0 && bits.size() == BitBytes(x.size()));
  SLIMGRAD_CHECK(positive.size() == BlockCount(x.size(), block) &&
                 negative.size() == positive.size());
  EncodeBits(backend, x, bits);
  ForBlocks(backend, x.size(), block, [&](std::size_t b, std::size_t begin, std::size_t end) {
    const float* __restrict in = x.data();
    std::size_t count = 0;
    for (std::size_t i = begin; i < end; ++i) count += static_cast<std::size_t>(in[i] >= 0);
    positive[b] =
        BlockMean(begin, end, count, [in](std::size_t i) { return in[i] >= 0 ? in[i] : 0.0F; });
    negative[b] = BlockMean(begin, end, end - begin - count,
                            [in](std::size_t i) { return in[i] >= 0 ? 0.0F : in[i]; });
  });
}

void OneBitDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                     In negative, std::size_t block, float weight, Out y) {
  SLIMGRAD_CHECK(block > 0 && bits.size() == BitBytes(y.size()));
  SLIMGRAD_CHECK(positive.size() == BlockCount(y.size(), block) &&
                 negative.size() == positive.size());
  const auto level = [weight](In levels) {
    return [weight, levels](std::size_t b) { return weight * levels[b]; };
  };
  AddLevels(backend, bits, block, y, level(positive), level(negative));
}

void ScaledSignEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale) {
  SLIMGRAD_CHECK(block > 0 && bits.size() == BitBytes(x.size()));
  SLIMGRAD_CHECK(scale.size() == BlockCount(x.size(), block));
  EncodeBits(backend, x, bits);
  ForBlocks(backend, x.size(), block, [&](std::size_t b, std::size_t begin, std::size_t end) {
    const float* __restrict in = x.data();
    scale[b] = BlockMean(begin, end, end - begin, [in](std::size_t i) { return std::fabs(in[i]); });
  });
}

void ScaledSignDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                         std::size_t block, float weight, Out y) {
  SLIMGRAD_CHECK(block > 0 && bits.size() == BitBytes(y.size()));
  SLIMGRAD_CHECK(scale.size() == BlockCount(y.size(), block));
  const auto level = [scale](float w) {
    return [w, scale](std::size_t b) { return w * scale[b]; };
  };
  AddLevels(backend, bits, block, y, level(weight), level(-weight));
}

}  // namespace slimgrad::kernels::cpu
