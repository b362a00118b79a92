#include "kernels/index_code.h"

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

using Bytes = std::vector<std::uint8_t>;
using Indices = std::vector<std::uint32_t>;

Bytes Encode(const Indices& indices) {
  Bytes code(DeltaBound(indices.size())), expected(code.size());
  code.resize(subject::DeltaEncode(kBackend, indices, code));
  expected.resize(ref::DeltaEncode(kBackend, indices, expected));
  EXPECT_EQ(code, expected);
  return code;
}

// Decodes `count` indices both ways; the verdicts and, if good, the indices must agree.
Status Decode(const Bytes& code, std::size_t count, Indices* indices) {
  Indices expected(count);
  indices->assign(count, 0);
  const Status status = subject::DeltaDecode(kBackend, code, *indices);
  const Status reference = ref::DeltaDecode(kBackend, code, expected);
  EXPECT_EQ(status.ok(), reference.ok())
      << ::testing::PrintToString(code) << " as " << count << ": " << status.message() << " / "
      << reference.message();
  if (status.ok() && reference.ok()) {
    EXPECT_EQ(*indices, expected);
  }
  return status;
}

TEST(IndexCodeTest, Literals) {
  EXPECT_EQ(Encode({}), Bytes{});
  EXPECT_EQ(Encode({0}), Bytes{0x00});
  EXPECT_EQ(Encode({127}), Bytes{0x7F});
  EXPECT_EQ(Encode({128}), (Bytes{0x80, 0x01}));
  EXPECT_EQ(Encode({5, 6, 7}), (Bytes{0x05, 0x00, 0x00}));
  EXPECT_EQ(Encode({0, 300}), (Bytes{0x00, 0xAB, 0x02}));
  EXPECT_EQ(Encode({0xFFFFFFFF}), (Bytes{0xFF, 0xFF, 0xFF, 0xFF, 0x0F}));
  EXPECT_EQ(Encode({0xFFFFFFFE, 0xFFFFFFFF}), (Bytes{0xFE, 0xFF, 0xFF, 0xFF, 0x0F, 0x00}));
}

TEST(IndexCodeTest, WhatIsEncodedDecodes) {
  std::mt19937 random(3);
  for (std::size_t n : kLengths) {
    for (std::uint32_t most : {1U, 2U, 200U, 20000U, 300000U}) {
      Indices indices(n), decoded;
      std::uint32_t next = 0;
      for (std::uint32_t& index : indices) {
        index = next + random() % most;
        next = index + 1;
      }
      EXPECT_TRUE(Decode(Encode(indices), n, &decoded).ok());
      EXPECT_EQ(decoded, indices);
    }
  }
}

TEST(IndexCodeTest, HostileCodesAreRefused) {
  struct Case {
    Bytes code;
    std::size_t count;
    const char* message;
  };
  const std::vector<Case> cases = {
      {{}, 1, "delta code of index 0: expected more bytes than the code has, found 0"},
      {{0x80}, 1, "delta code of index 0: expected more bytes than the code has, found 1"},
      {{0x05}, 2, "delta code of index 1: expected more bytes than the code has, found 1"},
      {{0x05, 0xFF, 0xFF},
       2,
       "delta code of index 1: expected more bytes than the code has, found 3"},
      {{0x80, 0x00}, 1, "delta code of index 0: expected the shortest form, found 0"},
      {{0x85, 0x80, 0x00}, 1, "delta code of index 0: expected the shortest form, found 0"},
      {{0xFF, 0xFF, 0xFF, 0xFF, 0x10},
       1,
       "delta code of index 0: expected an index below 2^32, found 4563402751"},
      {{0xFF, 0xFF, 0xFF, 0xFF, 0x7F},
       1,
       "delta code of index 0: expected an index below 2^32, found 34359738367"},
      {{0xFF, 0xFF, 0xFF, 0xFF, 0x8F, 0x01},
       1,
       "delta code of index 0: expected at most 5 bytes, found 6"},
      {{0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x00},
       2,
       "delta code of index 1: expected an index below 2^32, found 4294967296"},
      {{0x05, 0x00}, 1, "delta code: expected 1 bytes, found 2"},
      {{0x00}, 0, "delta code: expected 0 bytes, found 1"},
  };
  for (const Case& c : cases) {
    Indices indices;
    const Status status = Decode(c.code, c.count, &indices);
    EXPECT_EQ(status.code(), Code::kCorrupt) << c.message;
    // A device only counts what it refuses.
    if (!OnCuda()) {
      EXPECT_EQ(status.message(), c.message);
    }
  }
}

constexpr std::array<std::uint8_t, 9> kBytes = {0x00, 0x01, 0x0F, 0x10, 0x7F,
                                                0x80, 0x81, 0x8F, 0xFF};

// Whatever is accepted is what the encoder writes, for every code of up to two bytes and many
// longer ones; on a GPU, where each is a launch, for fewer.
TEST(IndexCodeTest, AcceptedCodesAreCanonical) {
  const auto check = [](const Bytes& code, std::size_t count) {
    Indices indices;
    if (Decode(code, count, &indices).ok()) {
      EXPECT_EQ(Encode(indices), code);
    }
  };
  const unsigned stride = OnCuda() ? 127 : 1;
  for (unsigned a = 0; a < 256; ++a) {
    check({static_cast<std::uint8_t>(a)}, 1);
    for (unsigned b = a % stride; b < 256; b += stride)
      for (std::size_t count : {1, 2})
        check({static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)}, count);
  }
  std::mt19937 random(4);
  for (int i = 0; i < (OnCuda() ? 200 : 20000); ++i) {
    Bytes code(random() % 13);
    for (std::uint8_t& byte : code) byte = kBytes[random() % kBytes.size()];
    for (std::size_t count = 0; count < 5; ++count) check(code, count);
  }
}

// Codes that blocks share, in which gaps begin in one block's bytes and end in another's.
TEST(IndexCodeTest, LongCodesAreWhatTheReferenceMakes) {
  std::mt19937 random(7);
  Indices indices(20000), decoded;
  std::uint64_t next = 0;
  for (std::uint32_t& index : indices) {
    index = static_cast<std::uint32_t>(next + (random() >> (12 + random() % 20)));
    next = std::uint64_t{index} + 1;
  }
  ASSERT_LT(next, std::uint64_t{1} << 32);
  const Bytes code = Encode(indices);
  EXPECT_TRUE(Decode(code, indices.size(), &decoded).ok());
  EXPECT_EQ(decoded, indices);
  // One wrong byte, wherever it is, and one too few or too many.
  for (std::size_t at : {std::size_t{0}, code.size() / 2, code.size() - 1}) {
    Bytes wrong = code;
    while (wrong[at] >= 0x80) ++at;
    wrong[at] |= 0x80;
    EXPECT_EQ(Decode(wrong, indices.size(), &decoded).code(), Code::kCorrupt);
  }
  EXPECT_EQ(Decode(code, indices.size() - 1, &decoded).code(), Code::kCorrupt);
  EXPECT_EQ(Decode(code, indices.size() + 1, &decoded).code(), Code::kCorrupt);
}

TEST(IndexCodeTest, OnlyIfDecidesOnTheDevice) {
  for (std::uint64_t only_if : {0, 1}) {
    Backend backend;
    backend.only_if = &only_if;
    Bytes code(DeltaBound(2), 0xAA);
    EXPECT_EQ(subject::DeltaEncode(backend, Indices{5, 6}, code), only_if * 2);
    EXPECT_EQ(code[0], only_if == 0 ? 0xAA : 0x05);
    Indices indices = {9};
    EXPECT_TRUE(subject::DeltaDecode(backend, Bytes{0x07}, indices).ok());
    EXPECT_EQ(indices[0], only_if == 0 ? 9 : 7);
    EXPECT_EQ(subject::DeltaDecode(backend, Bytes{0x85}, indices).ok(), only_if == 0);
  }
}

TEST(IndexCodeTest, EveryCutIsRefused) {
  const Indices indices = {3, 200, 201, 70000, 0x80000000, 0xFFFFFFFF};
  const Bytes code = Encode(indices);
  Indices decoded;
  for (std::size_t length = 0; length < code.size(); ++length)
    EXPECT_FALSE(
        Decode(Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length)), 6, &decoded)
            .ok());
}

TEST(IndexCodeDeathTest, MistakesOfTheCallerStop) {
  Bytes code(10), small(9);
  EXPECT_DEATH(subject::DeltaEncode(kBackend, Indices{2, 2}, code), "check failed");
  EXPECT_DEATH(subject::DeltaEncode(kBackend, Indices{3, 2}, code), "check failed");
  EXPECT_DEATH(subject::DeltaEncode(kBackend, Indices{0xFFFFFFFF, 0}, code), "check failed");
  EXPECT_DEATH(subject::DeltaEncode(kBackend, Indices{1, 2}, small), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
