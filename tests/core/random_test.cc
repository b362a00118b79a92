#include "core/random.h"

#include <set>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

using Words = std::array<std::uint32_t, 4>;

std::uint64_t Join(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

// The known answers that Random123 ships for philox4x32-10: counter, key, result.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0}, 0), (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(Philox({ones, ones}, ones), (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  const RandomKey key = {Join(0xA4093822, 0x299F31D0), Join(0x13198A2E, 0x03707344)};
  EXPECT_EQ(Philox(key, Join(0x243F6A88, 0x85A308D3)),
            (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(RandomKey, LiteralValues) {
  // XXH3-64 of seed 42, rank 3 (or shared), length 13, "int8.rounding", "0.weight", computed apart
  // from this library.
  EXPECT_EQ(MakeRandomKey(42, 0, "int8.rounding", "0.weight", 3).bits, 0xDDE38576BD2776BCU);
  EXPECT_EQ(MakeRandomKey(42, 9, "int8.rounding", "0.weight", kShared).bits, 0x504F304174C415AFU);
  EXPECT_EQ(MakeRandomKey(42, 9, "int8.rounding", "0.weight", kShared).step, 9U);
}

TEST(RandomKey, EveryPartMatters) {
  std::set<std::uint64_t> bits;
  bits.insert(MakeRandomKey(1, 0, "ab", "c", 0).bits);
  bits.insert(MakeRandomKey(2, 0, "ab", "c", 0).bits);
  bits.insert(MakeRandomKey(1, 0, "a", "bc", 0).bits);  // the same letters, cut elsewhere
  bits.insert(MakeRandomKey(1, 0, "ab", "d", 0).bits);
  bits.insert(MakeRandomKey(1, 0, "ab", "c", 1).bits);
  bits.insert(MakeRandomKey(1, 0, "ab", "c", kShared).bits);
  EXPECT_EQ(bits.size(), 6U);

  // The step is in the counter: one key serves a whole run.
  EXPECT_EQ(MakeRandomKey(1, 0, "ab", "c", 0).bits, MakeRandomKey(1, 7, "ab", "c", 0).bits);
  EXPECT_NE(Philox({1, 0}, 5), Philox({1, 7}, 5));
}

TEST(Random16, EightLanesABlock) {
  const RandomKey key = {1234, 56};
  const Words block = Philox(key, 2);
  EXPECT_EQ(Random16(key, 16), block[0] & 0xFFFF);
  EXPECT_EQ(Random16(key, 17), block[0] >> 16);
  EXPECT_EQ(Random16(key, 23), block[3] >> 16);
  EXPECT_EQ(Random16(key, 15), Philox(key, 1)[3] >> 16);
}

TEST(Uniform, UpperBitsOfFourLanesABlock) {
  const RandomKey key = {1234, 56};
  EXPECT_EQ(Uniform(key, 9), static_cast<float>(Philox(key, 2)[1] >> 8) / 16777216.0F);
  // Beyond 2^32 blocks the counter's second word moves.
  const std::uint64_t far = std::uint64_t{1} << 36;
  EXPECT_EQ(Uniform(key, far), static_cast<float>(Philox(key, far / 4)[0] >> 8) / 16777216.0F);
  EXPECT_NE(Uniform(key, far), Uniform(key, 0));
}

TEST(Uniform, FillsTheHalfOpenUnitInterval) {
  const RandomKey key = MakeRandomKey(7, 1, "test", "w", 0);
  constexpr int kDraws = 40'000;
  double sum = 0;
  float least = 1;
  float most = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float u = Uniform(key, static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  // Five standard errors of the mean: 5 / sqrt(12 * 40000).
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0073);
  EXPECT_LT(least, 0.001F);
  EXPECT_GT(most, 0.999F);
}

}  // namespace
}  // namespace slimgrad
