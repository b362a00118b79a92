// Private to the cpu kernels: Philox4x32-10 of core/random.h in vectors, so that Random16 of
// consecutive elements comes out in their order. Compiled once for each instruction set.
//
// A block of the stream is 8 values of Random16, and has a 64-bit lane: its words are in the lower
// halves, and the upper ones hold what multiplication by 32 x 32 bits does not read. So a round
// costs two multiplications, two shuffles and two exclusive ors for kLanes / 2 blocks.
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
  // Vectors of blocks that are drawn together: a round waits for its multiplications otherwise.
  static constexpr std::size_t kSets = kLanes == 16 ? 4 : 2;
  static constexpr std::size_t kVectors = 4 * kSets;  // of fp32, a call
  static constexpr std::size_t kElements = kVectors * kLanes;

  explicit PhiloxVectors(const RandomKey& key) : key_(key) {
    std::uint32_t low = Low(key.bits);
    std::uint32_t high = High(key.bits);
    for (std::size_t round = 0; round < kRounds; ++round) {
      // Not a loop over lanes, which GCC 12 miscompiles at -O3.
      hn::Store(hn::Set(kU32, low), kU32, keys_[round][0]);
      hn::Store(hn::Set(kU32, high), kU32, keys_[round][1]);
      low += 0x9E3779B9U;  // the golden ratio, and the square root of 3 less 1
      high += 0xBB67AE85U;
    }
    SetHighBlock(0);
  }

  // Lane l of values[k] is Random16 of element first + k * kLanes + l below the upper half of
  // `above`. first is a multiple of kElements.
  HWY_INLINE void Random16s(std::uint64_t first, std::uint32_t above, VU (&values)[kVectors]) {
    const std::uint64_t block = first / 8;
    if (HWY_UNLIKELY(High(block) != high_block_)) SetHighBlock(High(block));
    Words words[kSets];
    Unroll<kSets>([&](auto set) HWY_ATTR { words[set] = Start(Low(block) + set * kLanes / 2); });
#pragma GCC unroll 7
    for (std::size_t round = 2; round < kRounds - 1; ++round)
      Unroll<kSets>([&](auto set) HWY_ATTR { Round(round, words[set]); });
    Unroll<kSets>([&](auto set) HWY_ATTR { Finish(words[set], above, values + 4 * set); });
  }

 private:
  static constexpr std::size_t kRounds = 10;
  static constexpr std::uint32_t kFactor0 = 0xD2511F53U;
  static constexpr std::uint32_t kFactor2 = 0xCD9E8D57U;
  static constexpr std::size_t kParts = kLanes / 4;  // parts of 128 bits a vector

  static std::uint32_t Low(std::uint64_t bits) { return static_cast<std::uint32_t>(bits); }
  static std::uint32_t High(std::uint64_t bits) { return static_cast<std::uint32_t>(bits >> 32); }

  struct Words {
    // Implicit ones would not be compiled for the instruction set.
    HWY_INLINE Words() {}
    HWY_INLINE Words(VU a, VU b, VU c, VU d) : w0(a), w1(b), w2(c), w3(d) {}
    VU w0, w1, w2, w3;
  };

  // Which block a lane has, counted from the first.
  struct OffsetTable {
    constexpr OffsetTable() {
      for (std::size_t part = 0; part < kParts; ++part)
        for (std::size_t j = 0; j < 2; ++j)
          at[2 * part + j] = kParts * j + (kParts / 2) * (part % 2) + part / 2;
    }
    HWY_ALIGN std::uint64_t at[kLanes / 2] = {};
  };

  // All blocks of a call have the same upper word, and the step's words: half of the first two
  // rounds is the same for them.
  void SetHighBlock(std::uint32_t high) {
    high_block_ = high;
    const std::uint64_t p2 = std::uint64_t{Low(key_.step)} * kFactor2;
    const std::uint32_t w0 = High(p2) ^ high ^ keys_[0][0][0];
    const std::uint64_t p0 = std::uint64_t{w0} * kFactor0;
    hn::Store(hn::Set(kU32, High(key_.step) ^ keys_[0][1][0]), kU32, start_[0]);
    hn::Store(hn::Set(kU32, Low(p2) ^ keys_[1][0][0]), kU32, start_[1]);
    hn::Store(hn::Set(kU32, High(p0) ^ keys_[1][1][0]), kU32, start_[2]);
    hn::Store(hn::Set(kU32, Low(p0)), kU32, start_[3]);
  }

  HWY_INLINE VU Key(std::size_t round, std::size_t word) const {
    return hn::Load(kU32, keys_[round][word]);
  }

  static HWY_INLINE VU64 Multiply(VU word, std::uint32_t factor) {
    return hn::MulEven(word, hn::Set(kU32, factor));
  }

  // The upper halves of 64 bits, in the lower ones: a shuffle, since shifts share few units.
  static HWY_INLINE VU Upper(VU64 product) { return hn::Shuffle2301(hn::BitCast(kU32, product)); }

  // After two rounds, of the blocks with these lower words.
  HWY_INLINE Words Start(std::size_t low_block) const {
    static constexpr OffsetTable kOffsets;
    const VU64 counter = hn::Set(kU64, low_block) + hn::Load(kU64, kOffsets.at);
    const VU64 p0 = Multiply(hn::BitCast(kU32, counter), kFactor0);
    const VU64 p2 = Multiply(Upper(p0) ^ hn::Load(kU32, start_[0]), kFactor2);
    return {Upper(p2) ^ hn::Load(kU32, start_[1]), hn::BitCast(kU32, p2),
            hn::BitCast(kU32, p0) ^ hn::Load(kU32, start_[2]), hn::Load(kU32, start_[3])};
  }

  HWY_INLINE void Round(std::size_t round, Words& w) const {
    const VU64 p0 = Multiply(w.w0, kFactor0);
    const VU64 p2 = Multiply(w.w2, kFactor2);
    w.w0 = hn::Xor3(Upper(p2), w.w1, Key(round, 0));
    w.w2 = hn::Xor3(Upper(p0), w.w3, Key(round, 1));
    w.w1 = hn::BitCast(kU32, p2);
    w.w3 = hn::BitCast(kU32, p0);
  }

  // The last round for two words, in place: the upper half of the product first, then the lower.
  HWY_INLINE VU64 LastRound(VU64 product, VU other, std::size_t word) const {
    const VU swapped = Upper(product);
    const VU first = hn::Xor3(swapped, other, Key(kRounds - 1, word));
    return hn::BitCast(kU64, hn::OddEven(swapped, first));
  }

  // 64 bits are 4 elements, words 0 and 1 or words 2 and 3 of a block. Where a vector has several
  // parts of 128 bits, the two halves of a block go to neighbouring ones; then the halves of each
  // part, widened, are in order.
  HWY_INLINE void Finish(const Words& w, std::uint32_t above, VU* HWY_RESTRICT values) const {
    VU64 even = LastRound(Multiply(w.w2, kFactor2), w.w1, 0);
    VU64 odd = LastRound(Multiply(w.w0, kFactor0), w.w3, 1);
    if constexpr (kParts > 1) {
      const VU64 crossed = hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd));
      even = hn::OddEvenBlocks(crossed, even);
      odd = hn::OddEvenBlocks(odd, crossed);
    }
    const hn::Repartition<std::uint16_t, DF> u16;
    const auto upper = hn::Set(u16, static_cast<std::uint16_t>(above >> 16));
    const auto even16 = hn::BitCast(u16, even);
    const auto odd16 = hn::BitCast(u16, odd);
    values[0] = hn::BitCast(kU32, hn::InterleaveLower(u16, even16, upper));
    values[1] = hn::BitCast(kU32, hn::InterleaveLower(u16, odd16, upper));
    values[2] = hn::BitCast(kU32, hn::InterleaveUpper(u16, even16, upper));
    values[3] = hn::BitCast(kU32, hn::InterleaveUpper(u16, odd16, upper));
  }

  HWY_ALIGN std::uint32_t keys_[kRounds][2][kLanes];
  HWY_ALIGN std::uint32_t start_[4][kLanes];
  RandomKey key_;
  std::uint32_t high_block_;
};

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
