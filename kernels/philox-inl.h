// Private to the cpu kernels: Philox4x32-10 of core/random.h in vectors, so that Random16 of
// consecutive elements comes out in their order. Compiled once for each instruction set.
//
// A block of the stream is 8 values of Random16, and has a 64-bit lane: its words are in the lower
// halves, and the upper ones hold what multiplication by 32 x 32 bits does not read. So a round
// costs two multiplications, two shifts and two exclusive ors for kLanes / 2 blocks.
#if defined(SLIMGRAD_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_PHILOX_INL_H_
#undef SLIMGRAD_KERNELS_PHILOX_INL_H_
#else
#define SLIMGRAD_KERNELS_PHILOX_INL_H_
#endif

#include "core/random.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using DU64 = hn::Repartition<std::uint64_t, DF>;
using VU64 = hn::Vec<DU64>;
inline constexpr DU64 kU64;

class PhiloxVectors {
 public:
  static constexpr std::size_t kElements = 4 * kLanes;  // a call of Random16s

  explicit PhiloxVectors(const RandomKey& key) : step_(key.step) {
    auto low = static_cast<std::uint32_t>(key.bits);
    auto high = static_cast<std::uint32_t>(key.bits >> 32);
    for (std::size_t round = 0; round < kRounds; ++round) {
      // Not a loop over lanes, which GCC 12 miscompiles at -O3.
      hn::Store(hn::Set(kU32, low), kU32, keys_[round][0]);
      hn::Store(hn::Set(kU32, high), kU32, keys_[round][1]);
      low += 0x9E3779B9U;  // the golden ratio, and the square root of 3 less 1
      high += 0xBB67AE85U;
    }
  }

  // values[k], lane l, is Random16 of element first + k * kLanes + l, or'ed into the lower half of
  // `upper` (whose own is 0). first is a multiple of 8.
  HWY_INLINE void Random16s(std::uint64_t first, std::uint32_t upper, VU (&values)[4]) const {
    VU64 low;
    VU64 high;
    Blocks(first / 8, low, high);
    const hn::Repartition<std::uint16_t, DF> u16;
    const auto above = hn::Set(u16, static_cast<std::uint16_t>(upper >> 16));
    const auto even = hn::BitCast(u16, low);
    const auto odd = hn::BitCast(u16, high);
    values[0] = hn::BitCast(kU32, hn::InterleaveLower(u16, even, above));
    values[1] = hn::BitCast(kU32, hn::InterleaveLower(u16, odd, above));
    values[2] = hn::BitCast(kU32, hn::InterleaveUpper(u16, even, above));
    values[3] = hn::BitCast(kU32, hn::InterleaveUpper(u16, odd, above));
  }

 private:
  static constexpr std::size_t kRounds = 10;
  static constexpr std::size_t kParts = kLanes / 4;  // parts of 128 bits a vector

  // Which block a lane has, counted from the first.
  static HWY_INLINE VU64 Offsets() {
    HWY_ALIGN std::uint64_t offsets[kLanes / 2];
    for (std::size_t part = 0; part < kParts; ++part)
      for (std::size_t j = 0; j < 2; ++j)
        offsets[2 * part + j] = kParts * j + (kParts / 2) * (part % 2) + part / 2;
    return hn::Load(kU64, offsets);
  }

  HWY_INLINE VU Key(std::size_t round, std::size_t word) const {
    return hn::Load(kU32, keys_[round][word]);
  }

  static HWY_INLINE VU64 Multiply(VU word, std::uint32_t factor) {
    return hn::MulEven(word, hn::Set(kU32, factor));
  }

  static HWY_INLINE VU Upper(VU64 product) {
    return hn::BitCast(kU32, hn::ShiftRight<32>(product));
  }

  // The 64 bits of words 0 and 1, and of words 2 and 3, of block + Offsets().
  HWY_INLINE void Rounds(std::uint64_t block, VU64& low, VU64& high) const {
    const VU64 counter = hn::Set(kU64, block) + Offsets();
    VU w0 = hn::BitCast(kU32, counter);
    VU w1 = Upper(counter);
    VU w2 = hn::Set(kU32, static_cast<std::uint32_t>(step_));
    VU w3 = hn::Set(kU32, static_cast<std::uint32_t>(step_ >> 32));
    VU64 p0;
    VU64 p2;
    Unroll<kRounds>([&](auto round) HWY_ATTR {
      p0 = Multiply(w0, 0xD2511F53U);
      p2 = Multiply(w2, 0xCD9E8D57U);
      if constexpr (round + 1 < kRounds) {
        w0 = hn::Xor3(Upper(p2), w1, Key(round, 0));
        w2 = hn::Xor3(Upper(p0), w3, Key(round, 1));
        w1 = hn::BitCast(kU32, p2);
        w3 = hn::BitCast(kU32, p0);
      }
    });
    // The last round gives both words of a pair in place: the upper half first, then the lower.
    const VU lower = hn::BitCast(kU32, hn::Set(kU64, 0xFFFFFFFFU));
    const auto swapped = [](VU64 product)
                             HWY_ATTR { return hn::Shuffle2301(hn::BitCast(kU32, product)); };
    low = hn::BitCast(kU64, swapped(p2) ^ ((w1 ^ Key(kRounds - 1, 0)) & lower));
    high = hn::BitCast(kU64, swapped(p0) ^ ((w3 ^ Key(kRounds - 1, 1)) & lower));
  }

  // Two vectors whose interleaved halves are in order: each 128-bit part of `even` and `odd` has 4
  // elements of two blocks, and where a vector has several parts, the two halves of a block are in
  // neighbouring ones.
  HWY_INLINE void Blocks(std::uint64_t block, VU64& even, VU64& odd) const {
    VU64 low;
    VU64 high;
    Rounds(block, low, high);
    if constexpr (kParts == 1) {
      even = low;
      odd = high;
    } else {
      const VU64 crossed = hn::SwapAdjacentBlocks(hn::OddEvenBlocks(low, high));
      even = hn::OddEvenBlocks(crossed, low);
      odd = hn::OddEvenBlocks(high, crossed);
    }
  }

  HWY_ALIGN std::uint32_t keys_[kRounds][2][kLanes];
  std::uint64_t step_;
};

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
