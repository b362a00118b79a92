#include "kernels/random.h"

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;
const RandomKey kKey = {0x79072513F362CB49, 2};

template <class Function>
std::vector<std::uint16_t> Fill(Function function, const RandomKey& key, std::uint64_t first,
                                std::size_t n, const Backend& backend = kBackend) {
  std::vector<std::uint16_t> to(n);
  function(backend, key, first, to);
  return to;
}

// docs/numerics.md, and what Random123 says of block 0.
TEST(RandomTest, Literals) {
  EXPECT_EQ(
      Fill(subject::FillRandom16, {0, 0}, 0, 8),
      (std::vector<std::uint16_t>{0xE8D5, 0x6627, 0xC58D, 0xE169, 0xAC4C, 0xBC57, 0xDBD8, 0x9B00}));
  EXPECT_EQ(Fill(subject::FillRandom16, kKey, 0, 3),
            (std::vector<std::uint16_t>{0xBA89, 0xA892, 0xADC6}));
}

TEST(RandomTest, EveryLengthAndStartAsTheReferenceDraws) {
  for (std::uint64_t first = 0; first < 130; ++first)
    for (std::size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 200})
      EXPECT_EQ(Fill(subject::FillRandom16, kKey, first, n),
                Fill(ref::FillRandom16, kKey, first, n))
          << first << ", " << n;
}

// Blocks are counted in 64 bits: carries into the upper word, and bits there.
TEST(RandomTest, FarStartsAsTheReferenceDraws) {
  for (std::uint64_t block : {(1ULL << 32) - 5, 1ULL << 32, 0x123456789ABCDEFULL, (1ULL << 61) - 9})
    EXPECT_TRUE(SameBits(Fill(subject::FillRandom16, kKey, block * 8 + 3, 69),
                         Fill(ref::FillRandom16, kKey, block * 8 + 3, 69)))
        << block;
}

TEST(RandomTest, EveryBitOfKeyAndStepCounts) {
  for (int bit = 0; bit < 64; ++bit)
    for (const RandomKey& key : {RandomKey{1ULL << bit, 0}, RandomKey{~0ULL, 1ULL << bit}})
      EXPECT_TRUE(
          SameBits(Fill(subject::FillRandom16, key, 0, 64), Fill(ref::FillRandom16, key, 0, 64)))
          << bit;
}

// Memory that begins anywhere beside the stream's blocks: at their multiples, or not.
TEST(RandomTest, AnyPlaceInMemory) {
  for (std::uint64_t first : {0, 3, 8}) {
    for (std::size_t offset = 0; offset < 9; ++offset) {
      std::vector<std::uint16_t> to(3000, 7), expected = to;
      subject::FillRandom16(kBackend, kKey, first, std::span(to).subspan(offset, 2900));
      ref::FillRandom16(kBackend, kKey, first, std::span(expected).subspan(offset, 2900));
      EXPECT_EQ(to, expected) << first << ", " << offset;
    }
  }
}

// The last number of all has the number 2^64 - 1.
TEST(RandomTest, TheEndOfTheStream) {
  for (std::size_t n : {1, 8, 13})
    EXPECT_EQ(Fill(subject::FillRandom16, kKey, 0 - n, n), Fill(ref::FillRandom16, kKey, 0 - n, n))
        << n;
}

TEST(RandomTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  Backend backend;
  backend.only_if = &never;
  EXPECT_EQ(Fill(subject::FillRandom16, kKey, 0, 100, backend), std::vector<std::uint16_t>(100));
  backend.only_if = &always;
  EXPECT_EQ(Fill(subject::FillRandom16, kKey, 0, 100, backend),
            Fill(ref::FillRandom16, kKey, 0, 100));
}

TEST(RandomTest, ThreadsChangeNothing) {
  FourThreads threads;
  EXPECT_TRUE(SameBits(Fill(subject::FillRandom16, kKey, 5, kManyTasks, threads.backend()),
                       Fill(ref::FillRandom16, kKey, 5, kManyTasks)));
}

}  // namespace
}  // namespace slimgrad::kernels
