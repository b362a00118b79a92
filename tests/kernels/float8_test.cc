#include "kernels/float8.h"

#include <utility>

#include "kernels/elementwise.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

constexpr std::array kFormats = {Float8::kE4M3, Float8::kE5M2};
constexpr std::array kModes = {Overflow::kSaturate, Overflow::kInfinity};

using Codes = std::vector<std::uint8_t>;

struct Narrowed {
  Codes codes;
  std::uint64_t overflowed = 0;

  bool operator==(const Narrowed&) const = default;
};

template <class Function>
Narrowed RunNarrow(Function function, Float8 format, In x, Overflow overflow,
                   const Backend& backend = kBackend) {
  Narrowed result = {Codes(x.size(), 0x55)};
  function(backend, format, x, std::span(result.codes), overflow, &result.overflowed);
  return result;
}

void ExpectRefAgrees(In x, const Backend& backend = kBackend) {
  for (const Float8 format : kFormats)
    for (const Overflow overflow : kModes)
      EXPECT_TRUE(RunNarrow(subject::F32ToF8, format, x, overflow, backend) ==
                  RunNarrow(ref::F32ToF8, format, x, overflow))
          << "format " << static_cast<int>(format) << ", mode " << static_cast<int>(overflow);
}

struct Fed {
  Narrowed narrowed;
  std::vector<float> residual;
};

template <class Function>
Fed RunFeedback(Function function, Float8 format, In x, std::vector<float> residual,
                Overflow overflow, const Backend& backend = kBackend) {
  Fed fed = {{Codes(x.size(), 0x55)}, std::move(residual)};
  function(backend, format, x, Out(fed.residual), std::span(fed.narrowed.codes), overflow,
           &fed.narrowed.overflowed);
  return fed;
}

// By the calls that F32ToF8Feedback stands for.
void FeedbackBySeparateCalls(const Backend& backend, Float8 format, In x, Out residual,
                             std::span<std::uint8_t> to, Overflow overflow,
                             std::uint64_t* overflowed) {
  subject::AddSaturated(backend, x, residual);
  subject::F32ToF8(backend, format, residual, to, overflow, overflowed);
  std::vector<float> decoded(to.size());
  subject::F8ToF32(backend, format, to, decoded);
  subject::AddScaled(backend, decoded, -1.0F, residual);
}

void ExpectSameFeedback(const Fed& fed, const Fed& expected) {
  EXPECT_TRUE(fed.narrowed == expected.narrowed);
  EXPECT_TRUE(SameBitsOrNans(fed.residual, expected.residual));
}

void ExpectRefAgreesWithFeedback(In x, const Backend& backend = kBackend) {
  // A residual of the same kind, so that sums overflow where the values are huge.
  const std::vector<float> residual(x.rbegin(), x.rend());
  for (const Float8 format : kFormats) {
    for (const Overflow overflow : kModes) {
      const Fed fed = RunFeedback(subject::F32ToF8Feedback, format, x, residual, overflow, backend);
      ExpectSameFeedback(fed, RunFeedback(ref::F32ToF8Feedback, format, x, residual, overflow));
      if (overflow == Overflow::kInfinity) continue;
      EXPECT_TRUE(std::ranges::all_of(fed.residual, [](float p) { return std::isfinite(p); }));
    }
  }
}

struct Literal {
  float in;
  std::uint8_t e4m3, e5m2;  // kInfinity
};

// From the specification's tables of formats, and around the numbers where rounding changes its
// mind.
const std::vector<Literal>& Literals() {
  static const std::vector<Literal> literals = {
      {0.0F, 0x00, 0x00},
      {-0.0F, 0x80, 0x80},
      {1.0F, 0x38, 0x3C},
      {-1.0F, 0xB8, 0xBC},
      {448.0F, 0x7E, 0x5F},    // the largest of E4M3
      {57344.0F, 0x7F, 0x7B},  // the largest of E5M2
      {-57344.0F, 0xFF, 0xFB},
      {0x1p-6F, 0x08, 0x24},    // the least normal number of E4M3
      {0x1.Cp-7F, 0x07, 0x23},  // its largest subnormal
      {0x1p-9F, 0x01, 0x18},    // its least
      {0x1p-14F, 0x00, 0x04},   // the same of E5M2
      {0x1.8p-15F, 0x00, 0x03},
      {0x1p-16F, 0x00, 0x01},
      {-0x1p-16F, 0x80, 0x81},
      {kInf, 0x7F, 0x7C},
      {-kInf, 0xFF, 0xFC},
      {FromBits(0x7F800001), 0x7F, 0x7E},
      {FromBits(0xFFC01234), 0xFF, 0xFE},
      {FromBits(0x7FFFFFFF), 0x7F, 0x7E},
      // Ties: to even.
      {464.0F, 0x7E, 0x5F},
      {FromBits(0x43E80001), 0x7F, 0x5F},
      {FromBits(0x476FFFFF), 0x7F, 0x7B},
      {61440.0F, 0x7F, 0x7C},
      {1.0625F, 0x38, 0x3C},
      {1.1875F, 0x3A, 0x3D},
      {FromBits(0x3F880001), 0x39, 0x3C},  // 1.0625 and a bit
      {1.125F, 0x39, 0x3C},
      {1.375F, 0x3B, 0x3E},
      {0x1p-10F, 0x00, 0x14},
      {FromBits(0x3A800001), 0x01, 0x14},
      {0x1.8p-9F, 0x02, 0x1A},
      {0x1p-17F, 0x00, 0x00},
      {FromBits(0x37000001), 0x00, 0x01},
      {0x1.8p-16F, 0x00, 0x02},
      {0x1.Ep-7F, 0x08, 0x24},  // up to the least normal number
      {FromBits(0x00000001), 0x00, 0x00},
      {FromBits(0x807FFFFF), 0x80, 0x80},
      {kMaxFloat, 0x7F, 0x7C},
      {-kMaxFloat, 0xFF, 0xFC},
  };
  return literals;
}

TEST(Float8Test, LiteralCodes) {
  for (const Literal& literal : Literals()) {
    const In x(&literal.in, 1);
    for (const Float8 format : kFormats) {
      const std::uint8_t code = format == Float8::kE4M3 ? literal.e4m3 : literal.e5m2;
      for (const Narrowed& found : {RunNarrow(subject::F32ToF8, format, x, Overflow::kInfinity),
                                    RunNarrow(ref::F32ToF8, format, x, Overflow::kInfinity)})
        EXPECT_EQ(found.codes[0], code)
            << std::hex << ToBits(literal.in) << " in format " << static_cast<int>(format);
    }
  }
}

TEST(Float8Test, LiteralValues) {
  const auto expect = [](Float8 format, const Codes& codes, const std::vector<float>& values) {
    std::vector<float> wide(codes.size()), expected(codes.size());
    subject::F8ToF32(kBackend, format, codes, wide);
    ref::F8ToF32(kBackend, format, codes, expected);
    EXPECT_TRUE(SameBits(wide, values));
    EXPECT_TRUE(SameBits(expected, values));
  };
  const float nan = FromBits(0x7FC00000), minus_nan = FromBits(0xFFC00000);
  expect(Float8::kE4M3,
         {0x00, 0x80, 0x01, 0x07, 0x08, 0x7E, 0xFE, 0x7F, 0xFF, 0x38, 0x78, 0x77, 0x87},
         {0.0F, -0.0F, 0x1p-9F, 0x1.Cp-7F, 0x1p-6F, 448.0F, -448.0F, nan, minus_nan, 1.0F, 256.0F,
          240.0F, -0x1.Cp-7F});
  expect(Float8::kE5M2,
         {0x00, 0x80, 0x01, 0x03, 0x04, 0x7B, 0xFB, 0x7C, 0xFC, 0x7D, 0x7E, 0x7F, 0xFD, 0x3C, 0x83},
         {0.0F, -0.0F, 0x1p-16F, 0x1.8p-15F, 0x1p-14F, 57344.0F, -57344.0F, kInf, -kInf, nan, nan,
          nan, minus_nan, 1.0F, -0x1.8p-15F});
}

TEST(Float8Test, SaturationConcernsFiniteValuesOnlyAndCountsThem) {
  const std::vector<float> x = {464.0F, 465.0F, -1e9F, kInf, -kInf, kNan, 61439.0F, -61440.0F};
  const auto run = [&](Float8 format, Overflow overflow) {
    return RunNarrow(subject::F32ToF8, format, x, overflow);
  };
  EXPECT_EQ(run(Float8::kE4M3, Overflow::kSaturate),
            (Narrowed{{0x7E, 0x7E, 0xFE, 0x7F, 0xFF, 0x7F, 0x7E, 0xFE}, 4}));
  EXPECT_EQ(run(Float8::kE4M3, Overflow::kInfinity),
            (Narrowed{{0x7E, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F, 0x7F, 0xFF}, 4}));
  EXPECT_EQ(run(Float8::kE5M2, Overflow::kSaturate),
            (Narrowed{{0x5F, 0x5F, 0xFB, 0x7C, 0xFC, 0x7E, 0x7B, 0xFB}, 2}));
  EXPECT_EQ(run(Float8::kE5M2, Overflow::kInfinity),
            (Narrowed{{0x5F, 0x5F, 0xFC, 0x7C, 0xFC, 0x7E, 0x7B, 0xFC}, 2}));
}

TEST(Float8Test, OverflowsAreAddedUp) {
  const std::vector<float> x(1000, -1e6F);
  Codes codes(x.size());
  std::uint64_t overflowed = 5;
  subject::F32ToF8(kBackend, Float8::kE4M3, x, codes, Overflow::kSaturate, &overflowed);
  EXPECT_EQ(overflowed, 1005U);
  subject::F32ToF8(kBackend, Float8::kE5M2, x, codes, Overflow::kSaturate, nullptr);
  EXPECT_EQ(codes, Codes(x.size(), 0xFB));
}

Codes AllCodes() {
  Codes codes;
  for (unsigned code = 0; code < 256; ++code) codes.push_back(static_cast<std::uint8_t>(code));
  return codes;
}

TEST(Float8Test, AllCodesWidenAsTheReferenceDoesAndComeBack) {
  const Codes codes = AllCodes();
  for (const Float8 format : kFormats) {
    std::vector<float> wide(codes.size()), expected(codes.size());
    subject::F8ToF32(kBackend, format, codes, wide);
    ref::F8ToF32(kBackend, format, codes, expected);
    EXPECT_TRUE(SameBits(wide, expected));
    for (const Overflow overflow : kModes) {
      const Narrowed back = RunNarrow(subject::F32ToF8, format, wide, overflow);
      EXPECT_EQ(back.overflowed, 0U);
      for (const std::uint8_t code : codes) {
        const bool nan = format == Float8::kE5M2 && (code & 0x7F) > 0x7C;
        EXPECT_EQ(back.codes[code], nan ? (code & 0x80) | 0x7E : code);
      }
    }
  }
}

void ExpectRefAgreesOfCodes(std::span<const std::uint8_t> codes,
                            const Backend& backend = kBackend) {
  for (const Float8 format : kFormats) {
    for (const float weight : {1.0F, -1.0F, 0.3F}) {
      std::vector<float> y = MakeInput(Pattern::kNormal, codes.size(), 5), expected = y;
      subject::F8DecodeAdd(backend, format, codes, weight, y);
      ref::F8DecodeAdd(kBackend, format, codes, weight, expected);
      EXPECT_TRUE(SameBitsOrNans(y, expected)) << "added, weight " << weight;
      subject::F8Decode(backend, format, codes, weight, y);
      ref::F8Decode(kBackend, format, codes, weight, expected);
      EXPECT_TRUE(SameBitsOrNans(y, expected)) << "weight " << weight;
    }
    std::vector<float> wide(codes.size()), expected(codes.size());
    subject::F8ToF32(backend, format, codes, wide);
    ref::F8ToF32(kBackend, format, codes, expected);
    EXPECT_TRUE(SameBits(wide, expected));
  }
}

// Without NaNs, codes are decoded on another path.
Codes RandomCodes(std::size_t n, bool nans) {
  std::mt19937 random(static_cast<std::uint32_t>(n));
  Codes codes(n);
  for (std::uint8_t& code : codes) {
    code = static_cast<std::uint8_t>(random());
    if (!nans && (code & 0x7F) >= 0x7C) code &= 0xBF;
  }
  return codes;
}

TEST(Float8Test, AllLengthsDecodeAsTheReferenceDoes) {
  for (const std::size_t n : kLengths) {
    for (const bool nans : {false, true}) {
      const Codes codes = RandomCodes(n + 3, nans);
      for (const std::size_t offset : {0, 1, 3})
        ExpectRefAgreesOfCodes(std::span(codes).subspan(offset, n));
    }
    if (HasFailure()) FAIL() << "n = " << n;
  }
}

TEST(Float8Test, DecodingAddsOrOverwrites) {
  const Codes codes = {0x38, 0x80};
  std::vector<float> y = {10.0F, -0.0F};
  subject::F8DecodeAdd(kBackend, Float8::kE4M3, codes, -2.0F, y);
  EXPECT_TRUE(SameBits(y, {8.0F, 0.0F}));
  subject::F8Decode(kBackend, Float8::kE4M3, codes, 1.0F, y);
  EXPECT_TRUE(SameBits(y, {1.0F, 0.0F}));  // 0 + -0 is +0
}

// Every upper half of an fp32: that is every tie of either format, with what is next to it below.
TEST(Float8Test, AllUpperHalvesNarrowAsTheReferenceDoes) {
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      x.push_back(FromBits(upper << 16 | lower));
    if (upper % 4096 != 4095) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectRefAgrees(x)) << "to " << upper;
    if (HasFailure()) break;
    x.clear();
  }
}

TEST(Float8Test, EveryInputNarrowsAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectRefAgrees(x); });
}

TEST(Float8Test, EveryInputIsFedBackAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectRefAgreesWithFeedback(x); });
}

TEST(Float8Test, FeedbackIsTheSeparateCalls) {
  // Values that overflow and such that are not finite, in some groups of 64.
  std::vector<float> x = MakeInput(Pattern::kExponents, 999);
  std::vector<float> residual = MakeInput(Pattern::kNormal, 999, 2);
  x[200] = kInf;
  x[300] = kNan;
  residual[400] = -kInf;
  residual[401] = -kNan;
  x[500] = residual[500] = kMaxFloat;
  for (std::size_t i = 600; i < x.size(); ++i) x[i] = residual[i];  // no more overflow
  for (const Float8 format : kFormats)
    for (const Overflow overflow : kModes)
      ExpectSameFeedback(RunFeedback(subject::F32ToF8Feedback, format, x, residual, overflow),
                         RunFeedback(FeedbackBySeparateCalls, format, x, residual, overflow));
}

TEST(Float8Test, WhatIsFedBackIsWhatTheCodeLeavesOver) {
  const std::vector<float> x = {1.0F, 500.0F, kMaxFloat, -0x1p-11F, -0.0F, kInf};
  const std::vector<float> residual = {0x1p-5F, 0.0F, kMaxFloat, 0.0F, -0.0F, 0.0F};
  const Fed saturated =
      RunFeedback(subject::F32ToF8Feedback, Float8::kE4M3, x, residual, Overflow::kSaturate);
  EXPECT_EQ(saturated.narrowed, (Narrowed{{0x38, 0x7E, 0x7E, 0x80, 0x80, 0x7F}, 2}));
  EXPECT_TRUE(
      SameBitsOrNans(saturated.residual, {0x1p-5F, 52.0F, kMaxFloat, -0x1p-11F, 0.0F, kNan}));
  const Fed infinite =
      RunFeedback(subject::F32ToF8Feedback, Float8::kE5M2, x, residual, Overflow::kInfinity);
  EXPECT_EQ(infinite.narrowed, (Narrowed{{0x3C, 0x60, 0x7C, 0x90, 0x80, 0x7C}, 1}));
  EXPECT_TRUE(SameBitsOrNans(infinite.residual, {0x1p-5F, -12.0F, -kInf, 0.0F, 0.0F, kNan}));
}

TEST(Float8Test, StreamedOutputsAreTheSame) {
  FourThreads threads;
  // Bytes are streamed from twice as many elements on as codes of 16 bits.
  const std::size_t n = OnCuda() ? Streamed() : 2 * Streamed();
  const std::vector<float> memory = MakeInput(Pattern::kExponents, n);
  const Codes codes = RandomCodes(n, false);
  for (const std::size_t offset : {0, 1, 7}) {
    // Outputs that begin within a cache line.
    Codes to(n), expected(n);
    subject::F32ToF8(threads.backend(), Float8::kE5M2, In(memory).subspan(offset),
                     std::span(to).subspan(offset), Overflow::kSaturate, nullptr);
    ref::F32ToF8(kBackend, Float8::kE5M2, In(memory).subspan(offset),
                 std::span(expected).subspan(offset), Overflow::kSaturate, nullptr);
    EXPECT_TRUE(SameBits(to, expected));
    std::vector<float> wide(n), expected_wide(n);
    const auto from = std::span(codes).subspan(offset);
    subject::F8ToF32(threads.backend(), Float8::kE4M3, from, Out(wide).subspan(offset));
    ref::F8ToF32(kBackend, Float8::kE4M3, from, Out(expected_wide).subspan(offset));
    EXPECT_TRUE(SameBits(wide, expected_wide));
    subject::F8Decode(threads.backend(), Float8::kE5M2, from, 0.3F, Out(wide).subspan(offset));
    ref::F8Decode(kBackend, Float8::kE5M2, from, 0.3F, Out(expected_wide).subspan(offset));
    EXPECT_TRUE(SameBits(wide, expected_wide));
  }
}

TEST(Float8Test, ThreadsChangeNothing) {
  FourThreads threads;
  for (const Pattern pattern : {Pattern::kExponents, Pattern::kNormal}) {
    const std::vector<float> x = MakeInput(pattern, kManyTasks);
    ExpectRefAgrees(x, threads.backend());
    ExpectRefAgreesWithFeedback(x, threads.backend());
  }
  ExpectRefAgreesOfCodes(RandomCodes(kManyTasks, true), threads.backend());
}

TEST(Float8Test, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  const std::vector<float> x(5000, 3.0F);
  for (const std::uint64_t* only_if : {&never, &always}) {
    Backend backend;
    backend.only_if = only_if;
    const bool done = only_if == &always;
    std::vector<float> residual(5000, 1.0F), wide(5000, 9.0F), sum(5000, 9.0F);
    Codes codes(5000, 0x12);
    subject::F32ToF8(backend, Float8::kE4M3, x, codes, Overflow::kSaturate, nullptr);
    EXPECT_EQ(codes[4999], done ? 0x44 : 0x12);
    subject::F8ToF32(backend, Float8::kE4M3, codes, wide);
    EXPECT_EQ(wide[4999], done ? 3.0F : 9.0F);
    subject::F8DecodeAdd(backend, Float8::kE4M3, codes, 2.0F, sum);
    EXPECT_EQ(sum[4999], done ? 15.0F : 9.0F);
    subject::F8Decode(backend, Float8::kE4M3, codes, 2.0F, sum);
    EXPECT_EQ(sum[4999], done ? 6.0F : 9.0F);
    subject::F32ToF8Feedback(backend, Float8::kE4M3, x, residual, codes, Overflow::kSaturate,
                             nullptr);
    EXPECT_EQ(codes[4999], done ? 0x48 : 0x12);
    EXPECT_EQ(residual[4999], done ? 0.0F : 1.0F);
  }
}

TEST(Float8DeathTest, MistakesOfTheCallerStop) {
  std::vector<float> three(3), four(4);
  Codes codes(4);
  const auto mode = Overflow::kSaturate;
  EXPECT_DEATH(subject::F32ToF8(kBackend, Float8::kE4M3, three, codes, mode, nullptr),
               "check failed");
  EXPECT_DEATH(subject::F32ToF8Feedback(kBackend, Float8::kE4M3, three, four, codes, mode, nullptr),
               "check failed");
  EXPECT_DEATH(subject::F32ToF8Feedback(kBackend, Float8::kE4M3, four, three, codes, mode, nullptr),
               "check failed");
  EXPECT_DEATH(subject::F8ToF32(kBackend, Float8::kE5M2, codes, three), "check failed");
  EXPECT_DEATH(subject::F8Decode(kBackend, Float8::kE5M2, codes, 1.0F, three), "check failed");
  EXPECT_DEATH(subject::F8DecodeAdd(kBackend, Float8::kE5M2, codes, 1.0F, three), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
