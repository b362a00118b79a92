#include "kernels/sign.h"

#include "kernels/elementwise.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

struct OneBit {
  std::vector<std::uint8_t> bits;
  std::vector<float> positive;
  std::vector<float> negative;
};

struct ScaledSign {
  std::vector<std::uint8_t> bits;
  std::vector<float> scale;
};

template <class Function>
OneBit RunOneBit(Function function, In x, std::size_t block, const Backend& backend = kBackend) {
  const std::size_t blocks = BlockCount(x.size(), block);
  OneBit code = {std::vector<std::uint8_t>(BitBytes(x.size()), 0xEE),
                 std::vector<float>(blocks, -7.0F), std::vector<float>(blocks, -7.0F)};
  function(backend, x, block, std::span<std::uint8_t>(code.bits), Out(code.positive),
           Out(code.negative));
  return code;
}

template <class Function>
ScaledSign RunScaledSign(Function function, In x, std::size_t block,
                         const Backend& backend = kBackend) {
  ScaledSign code = {std::vector<std::uint8_t>(BitBytes(x.size()), 0xEE),
                     std::vector<float>(BlockCount(x.size(), block), -7.0F)};
  function(backend, x, block, std::span<std::uint8_t>(code.bits), Out(code.scale));
  return code;
}

std::vector<float> DecodeOneBit(const OneBit& code, std::size_t n, std::size_t block) {
  std::vector<float> y(n);
  subject::OneBitDecodeAdd(kBackend, code.bits, code.positive, code.negative, block, 1.0F, y);
  return y;
}

TEST(SignTest, OneBitLiterals) {
  const std::vector<float> x = {1.0F, -2.0F, 3.0F, -0.0F, 0.0F, -4.0F, 1.0F, 1.0F, -1.0F};
  const OneBit code = RunOneBit(subject::OneBitEncode, x, 5);
  EXPECT_EQ(code.bits, (std::vector<std::uint8_t>{0b11011101, 0}));
  EXPECT_EQ(code.positive, (std::vector<float>{1.0F, 1.0F}));  // (1 + 3 - 0 + 0) / 4, (1 + 1) / 2
  EXPECT_EQ(code.negative, (std::vector<float>{-2.0F, -2.5F}));
  EXPECT_EQ(DecodeOneBit(code, 9, 5), (std::vector<float>{1, -2, 1, 1, 1, -2.5F, 1, 1, -2.5F}));
}

TEST(SignTest, BlocksOfOneSignHaveAZeroForTheOther) {
  const OneBit up = RunOneBit(subject::OneBitEncode, std::vector<float>{1, 3}, 2);
  EXPECT_TRUE(SameBits(up.negative, {0.0F}));
  EXPECT_TRUE(SameBits(up.positive, {2.0F}));
  const OneBit down = RunOneBit(subject::OneBitEncode, std::vector<float>{-1, -3}, 2);
  EXPECT_TRUE(SameBits(down.positive, {0.0F}));
  EXPECT_TRUE(SameBits(down.negative, {-2.0F}));
}

TEST(SignTest, ScaledSignLiterals) {
  const std::vector<float> x = {1.0F, 0.1F};
  const ScaledSign code = RunScaledSign(subject::ScaledSignEncode, x, 2);
  EXPECT_EQ(code.bits, std::vector<std::uint8_t>{3});
  EXPECT_EQ(code.scale, std::vector<float>{0.55F});
  std::vector<float> y = {10.0F, 10.0F, 10.0F};
  subject::ScaledSignDecodeAdd(kBackend, std::vector<std::uint8_t>{0b101},
                               std::vector<float>{2.0F, 3.0F}, 2, 0.5F, y);
  EXPECT_EQ(y, (std::vector<float>{11.0F, 9.0F, 11.5F}));
}

TEST(SignTest, MeansOfHugeValuesAreWidened) {
  const std::vector<float> x(300, -3e38F);
  EXPECT_EQ(RunOneBit(subject::OneBitEncode, x, 300).negative, std::vector<float>{-3e38F});
  EXPECT_EQ(RunScaledSign(subject::ScaledSignEncode, x, 300).scale, std::vector<float>{3e38F});
  EXPECT_EQ(
      RunScaledSign(subject::ScaledSignEncode, std::vector<float>(5000, kMaxFloat), 5000).scale,
      std::vector<float>{kMaxFloat});
}

// 2^24 + 1 rounds to 2^24: which ones survive tells the shape of the sum.
TEST(SignTest, MeansHaveTheShapeOfLaneSums) {
  const auto probe = [](std::size_t n, const std::vector<std::size_t>& ones) {
    std::vector<float> x(n, 0.0F);
    x[0] = 0x1p24F;
    for (std::size_t i : ones) x[i] = 1.0F;
    const float scale = RunScaledSign(subject::ScaledSignEncode, x, n).scale[0];
    EXPECT_EQ(RunOneBit(subject::OneBitEncode, x, n).positive[0], scale);
    return scale * static_cast<float>(n) - 0x1p24F;  // n is a power of two: exact
  };
  EXPECT_EQ(probe(256, {64, 192}), 0.0F);
  EXPECT_EQ(probe(128, {32, 96}), 2.0F);
  EXPECT_EQ(probe(8192, {4096, 4097}), 2.0F);
  EXPECT_EQ(probe(4096, {4032, 2048}), 0.0F);
}

// A residual of the same kind, so that sums overflow where the values are huge.
std::vector<float> ResidualFor(In x) { return {x.rbegin(), x.rend()}; }

void ExpectFeedbackAgrees(In x, std::size_t block, const Backend& backend) {
  std::vector<float> residual = ResidualFor(x);
  std::vector<float> expected = residual;
  const auto run = [&](auto function, std::vector<float>& r) {
    return [&, function](const Backend& b, In in, std::size_t size, auto... code) {
      function(b, in, Out(r), size, code...);
    };
  };
  const OneBit one = RunOneBit(run(subject::OneBitEncodeFeedback, residual), x, block, backend);
  const OneBit one_expected = RunOneBit(run(ref::OneBitEncodeFeedback, expected), x, block);
  EXPECT_EQ(one.bits, one_expected.bits);
  EXPECT_TRUE(SameBits(one.positive, one_expected.positive));
  EXPECT_TRUE(SameBits(one.negative, one_expected.negative));
  EXPECT_TRUE(SameBits(residual, expected));

  residual = expected = ResidualFor(x);
  const auto sign =
      RunScaledSign(run(subject::ScaledSignEncodeFeedback, residual), x, block, backend);
  const auto sign_expected = RunScaledSign(run(ref::ScaledSignEncodeFeedback, expected), x, block);
  EXPECT_EQ(sign.bits, sign_expected.bits);
  EXPECT_TRUE(SameBits(sign.scale, sign_expected.scale));
  EXPECT_TRUE(SameBits(residual, expected));
}

void ExpectBitsAgree(In x, const Backend& backend = kBackend) {
  std::vector<std::uint8_t> bits(BitBytes(x.size()), 0xEE), expected(bits);
  subject::SignPack(backend, x, bits);
  ref::SignPack(kBackend, x, expected);
  EXPECT_EQ(bits, expected);
  std::vector<float> y(x.size(), kNan), y_expected(y);
  subject::SignUnpack(backend, bits, y);
  ref::SignUnpack(kBackend, bits, y_expected);
  EXPECT_TRUE(SameBits(y, y_expected));
}

void ExpectRefAgrees(In x, std::size_t block, const Backend& backend = kBackend) {
  ExpectFeedbackAgrees(x, block, backend);
  const OneBit one = RunOneBit(subject::OneBitEncode, x, block, backend);
  const OneBit one_expected = RunOneBit(ref::OneBitEncode, x, block);
  EXPECT_EQ(one.bits, one_expected.bits);
  EXPECT_TRUE(SameBits(one.positive, one_expected.positive));
  EXPECT_TRUE(SameBits(one.negative, one_expected.negative));
  const ScaledSign sign = RunScaledSign(subject::ScaledSignEncode, x, block, backend);
  const ScaledSign sign_expected = RunScaledSign(ref::ScaledSignEncode, x, block);
  EXPECT_EQ(sign.bits, sign_expected.bits);
  EXPECT_TRUE(SameBits(sign.scale, sign_expected.scale));

  std::vector<float> y = MakeInput(Pattern::kNormal, x.size(), 3);
  std::vector<float> expected = y;
  subject::OneBitDecodeAdd(backend, one.bits, one.positive, one.negative, block, 0.3F, y);
  ref::OneBitDecodeAdd(kBackend, one.bits, one.positive, one.negative, block, 0.3F, expected);
  EXPECT_TRUE(SameBits(y, expected));
  subject::ScaledSignDecodeAdd(backend, sign.bits, sign.scale, block, -0.7F, y);
  ref::ScaledSignDecodeAdd(kBackend, sign.bits, sign.scale, block, -0.7F, expected);
  EXPECT_TRUE(SameBits(y, expected));
  subject::OneBitDecode(backend, one.bits, one.positive, one.negative, block, 0.3F, y);
  ref::OneBitDecode(kBackend, one.bits, one.positive, one.negative, block, 0.3F, expected);
  EXPECT_TRUE(SameBits(y, expected));
  subject::ScaledSignDecode(backend, sign.bits, sign.scale, block, -0.7F, y);
  ref::ScaledSignDecode(kBackend, sign.bits, sign.scale, block, -0.7F, expected);
  EXPECT_TRUE(SameBits(y, expected));
}

TEST(SignTest, EveryInputPacksAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectBitsAgree(x); });
}

TEST(SignTest, PackLiterals) {
  std::vector<std::uint8_t> bits(2, 0xEE);
  subject::SignPack(kBackend, std::vector<float>{0.0F, -0.0F, -1e-45F, 1e-45F, -1, 1, 2, 3, -4, 5},
                    bits);
  EXPECT_EQ(bits, (std::vector<std::uint8_t>{0b11101011, 0b10}));
  std::vector<float> y(10, kNan);
  subject::SignUnpack(kBackend, bits, y);
  EXPECT_EQ(y, (std::vector<float>{1, 1, -1, 1, -1, 1, 1, 1, -1, 1}));
}

TEST(SignTest, DecodingOverwrites) {
  std::vector<float> y(3, kNan);
  const std::vector<std::uint8_t> bits = {0b011};
  const std::vector<float> up = {3.0F, 5.0F}, down = {-2.0F, -0.0F};
  subject::OneBitDecode(kBackend, bits, up, down, 2, 0.5F, y);
  EXPECT_TRUE(SameBits(y, {1.5F, 1.5F, 0.0F}));  // 0 + 0.5 * -0
  subject::ScaledSignDecode(kBackend, bits, up, 2, -1.0F, y);
  EXPECT_TRUE(SameBits(y, {-3.0F, -3.0F, 5.0F}));
}

TEST(SignTest, FeedbackLiterals) {
  std::vector<float> residual = {1.0F, -1.0F, kMaxFloat, 0.5F};
  const std::vector<float> x = {2.0F, -4.0F, kMaxFloat, -2.5F};  // p = 3, -5, largest, -2
  std::vector<std::uint8_t> bits(1);
  std::vector<float> scale(2), positive(2), negative(2);
  std::vector<float> other = residual;
  subject::ScaledSignEncodeFeedback(kBackend, x, residual, 2, bits, scale);
  EXPECT_EQ(bits[0], 0b0101);
  EXPECT_EQ(scale, (std::vector<float>{4.0F, 0x1.FFFFFEp126F}));
  EXPECT_EQ(residual, (std::vector<float>{-1.0F, -1.0F, 0x1.FFFFFEp126F, 0x1.FFFFFEp126F}));
  subject::OneBitEncodeFeedback(kBackend, x, other, 2, bits, positive, negative);
  EXPECT_EQ(positive, (std::vector<float>{3.0F, kMaxFloat}));
  EXPECT_EQ(negative, (std::vector<float>{-5.0F, -2.0F}));
  EXPECT_TRUE(SameBits(other, {0.0F, 0.0F, 0.0F, 0.0F}));
}

// Three passes of the library's own kernels, which is what the fused one is defined by.
TEST(SignTest, FeedbackIsThePassesItFuses) {
  for (Pattern pattern : {Pattern::kNormal, Pattern::kHuge, Pattern::kExponents}) {
    const std::vector<float> x = MakeInput(pattern, 10000);
    for (std::size_t block : {100, 4096}) {
      std::vector<float> fused = ResidualFor(x);
      std::vector<float> passes = fused;
      const OneBit code =
          RunOneBit([&](const Backend& b, In in, std::size_t size,
                        auto... out) { subject::OneBitEncodeFeedback(b, in, fused, size, out...); },
                    x, block);
      subject::AddSaturated(kBackend, x, passes);
      const OneBit expected = RunOneBit(subject::OneBitEncode, passes, block);
      subject::OneBitDecodeAdd(kBackend, expected.bits, expected.positive, expected.negative, block,
                               -1.0F, passes);
      EXPECT_EQ(code.bits, expected.bits);
      EXPECT_TRUE(SameBits(fused, passes));
    }
  }
}

TEST(SignTest, StreamedOutputsAreTheSame) {
  FourThreads threads;
  const std::vector<float> memory = MakeInput(Pattern::kNormal, Streamed());
  for (std::size_t offset : {0, 1, 7}) {
    const In x = In(memory).subspan(offset);
    ExpectBitsAgree(x, threads.backend());
    // Outputs that begin within a cache line.
    for (std::size_t block : {4096UL, 9001UL}) {
      const ScaledSign code = RunScaledSign(subject::ScaledSignEncode, x, block, threads.backend());
      std::vector<float> y(memory.size()), expected(memory.size());
      subject::ScaledSignDecode(threads.backend(), code.bits, code.scale, block, 0.3F,
                                Out(y).subspan(offset));
      ref::ScaledSignDecode(kBackend, code.bits, code.scale, block, 0.3F,
                            Out(expected).subspan(offset));
      EXPECT_TRUE(SameBits(y, expected));
    }
  }
}

TEST(SignTest, EveryInputAsTheReferenceDoes) {
  for (std::size_t block : {64, 100, 4096, 1 << 20}) {
    if (OnCuda() && block == 64) continue;  // there, 100 is no other kind
    ForEveryInput([=](In x) { ExpectRefAgrees(x, block); });
  }
}

TEST(SignTest, SmallBlocks) {
  for (Pattern pattern : kPatterns)
    for (std::size_t block : {1, 2, 3, 7, 8, 9})
      for (std::size_t n : {0, 1, 7, 8, 9, 65, 257}) ExpectRefAgrees(MakeInput(pattern, n), block);
}

// Blocks that begin within a byte of bits, or are longer than a block of threads can hold; the last
// one is whole, has one element, or all but one.
TEST(SignTest, BlocksOfAnySize) {
  for (std::size_t block : {12, 33, 64, 513, 1001, 1025, 2052, 4095, 4097, 5000, 8192, 8193})
    for (std::size_t n : {2 * block, 2 * block + 1, 3 * block - 1})
      for (Pattern pattern : {Pattern::kNormal, Pattern::kHuge, Pattern::kExponents}) {
        SCOPED_TRACE(std::to_string(n) + " in blocks of " + std::to_string(block));
        ExpectRefAgrees(MakeInput(pattern, n), block);
      }
}

// One of several blocks overflows; its neighbours, summed beside it, do not.
TEST(SignTest, OneBlockOfManyIsWidened) {
  for (std::size_t block : {4, 16, 64, 256, 4096, 5000}) {
    std::vector<float> x = MakeInput(Pattern::kNormal, 4 * block);
    for (std::size_t i = 2 * block; i < 3 * block; ++i) x[i] = i % 2 == 0 ? 3e38F : -3e38F;
    ExpectRefAgrees(x, block);
  }
}

TEST(SignTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  for (std::size_t block : {256UL, 1001UL, 10000UL}) {
    const std::vector<float> x = MakeInput(Pattern::kNormal, 12001);
    std::vector<float> residual = x;
    const auto feedback = [&](const Backend& b, In in, std::size_t size, auto... code) {
      subject::OneBitEncodeFeedback(b, in, residual, size, code...);
    };
    Backend backend;
    backend.only_if = &never;
    const OneBit none = RunOneBit(feedback, x, block, backend);
    EXPECT_EQ(none.bits, std::vector<std::uint8_t>(BitBytes(x.size()), 0xEE));
    EXPECT_TRUE(SameBits(none.positive, std::vector<float>(none.positive.size(), -7.0F)));
    subject::SignUnpack(backend, none.bits, residual);
    subject::OneBitDecode(backend, none.bits, none.positive, none.negative, block, 1.0F, residual);
    EXPECT_TRUE(SameBits(residual, x));
    backend.only_if = &always;
    const OneBit done = RunOneBit(feedback, x, block, backend);
    std::vector<float> twice = x;
    ref::AddSaturated(kBackend, x, twice);
    EXPECT_EQ(done.bits, RunOneBit(ref::OneBitEncode, twice, block).bits);
  }
}

TEST(SignTest, ThreadsChangeNothing) {
  FourThreads threads;
  // The reference reads everything once a block, so blocks are few. Task and byte limits fall
  // within blocks.
  for (std::size_t block : {9001UL, kManyTasks})
    ExpectRefAgrees(MakeInput(Pattern::kNormal, kManyTasks), block, threads.backend());
  const std::vector<float> x = MakeInput(Pattern::kNormal, kManyTasks);
  const ScaledSign one = RunScaledSign(subject::ScaledSignEncode, x, 3);
  const ScaledSign four = RunScaledSign(subject::ScaledSignEncode, x, 3, threads.backend());
  EXPECT_EQ(one.bits, four.bits);
  EXPECT_TRUE(SameBits(one.scale, four.scale));
}

TEST(SignTest, SpareBitsAreWrittenZeroAndNeverRead) {
  for (std::size_t n = 1; n < 16; ++n) {
    const std::vector<float> x(n, 1.0F);
    OneBit code = RunOneBit(subject::OneBitEncode, x, 8);
    EXPECT_EQ(code.bits.back(), n % 8 == 0 ? 0xFF : (1U << n % 8) - 1) << n;
    const std::vector<float> clean = DecodeOneBit(code, n, 8);
    if (n % 8 != 0)
      code.bits.back() = static_cast<std::uint8_t>(code.bits.back() | (0xFFU << n % 8));
    EXPECT_EQ(DecodeOneBit(code, n, 8), clean) << n;
  }
}

TEST(SignDeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(9);
  std::vector<std::uint8_t> bits(2), few(1);
  std::vector<float> levels(3), wrong(2);
  EXPECT_DEATH(subject::OneBitEncode(kBackend, x, 0, bits, levels, levels), "check failed");
  EXPECT_DEATH(subject::OneBitEncode(kBackend, x, 3, few, levels, levels), "check failed");
  EXPECT_DEATH(subject::OneBitEncode(kBackend, x, 3, bits, levels, wrong), "check failed");
  EXPECT_DEATH(subject::ScaledSignEncode(kBackend, x, 3, bits, wrong), "check failed");
  EXPECT_DEATH(subject::ScaledSignEncodeFeedback(kBackend, x, levels, 3, bits, levels),
               "check failed");
  EXPECT_DEATH(subject::OneBitEncodeFeedback(kBackend, x, levels, 3, bits, levels, levels),
               "check failed");
  EXPECT_DEATH(subject::SignPack(kBackend, x, few), "check failed");
  std::vector<float> y(9);
  EXPECT_DEATH(subject::SignUnpack(kBackend, few, y), "check failed");
  EXPECT_DEATH(subject::OneBitDecode(kBackend, bits, levels, wrong, 3, 1, y), "check failed");
  EXPECT_DEATH(subject::ScaledSignDecode(kBackend, bits, wrong, 3, 1, y), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
