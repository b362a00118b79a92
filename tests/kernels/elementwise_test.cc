#include "kernels/elementwise.h"

#include <cmath>

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

template <class Function>
std::uint64_t Count(Function count, const ConstView& x, const Backend& backend = kBackend) {
  std::uint64_t found = 99;
  count(backend, x, &found);
  return found;
}

template <class Function>
std::uint64_t RunDivide(Function divide, float divisor, Out y, const Backend& backend = kBackend) {
  std::uint64_t non_finite = 99;
  divide(backend, divisor, y, &non_finite);
  return non_finite;
}

TEST(ElementwiseTest, Literals) {
  std::vector<float> y = {1.0F, 2.0F, -3.0F};
  subject::AddScaled(kBackend, std::vector<float>{10.0F, 20.0F, 30.0F}, 0.5F, y);
  EXPECT_EQ(y, (std::vector<float>{6.0F, 12.0F, 12.0F}));
  RunDivide(subject::Divide, 3.0F, y);
  EXPECT_EQ(y, (std::vector<float>{2.0F, 4.0F, 4.0F}));
  subject::Fill(kBackend, -0.0F, y);
  EXPECT_TRUE(SameBits(y, {-0.0F, -0.0F, -0.0F}));
}

// (1 + 2^-12)^2 rounds to 1 + 2^-11; a fused multiply-add would leave 2^-24 behind.
TEST(ElementwiseTest, ProductIsRoundedBeforeTheSum) {
  std::vector<float> y(9, -(1.0F + 0x1p-11F));
  subject::AddScaled(kBackend, std::vector<float>(9, 1.0F + 0x1p-12F), 1.0F + 0x1p-12F, y);
  EXPECT_TRUE(SameBits(y, std::vector<float>(9, 0.0F)));
}

// A product with the reciprocal would give another last bit.
TEST(ElementwiseTest, DivisionIsADivision) {
  std::vector<float> y(9, 5.0F);
  RunDivide(subject::Divide, 49.0F, y);
  EXPECT_TRUE(SameBits(y, std::vector<float>(9, 5.0F / 49.0F)));
  EXPECT_NE(y[0], 5.0F * (1.0F / 49.0F));
}

TEST(ElementwiseTest, AddSaturatedKeepsFiniteTermsFinite) {
  std::vector<float> y = {3e38F, -3e38F, 3e38F, kInf, -kInf, kMaxFloat, 1.0F, kInf};
  subject::AddSaturated(kBackend,
                        std::vector<float>{3e38F, -3e38F, -3e38F, 1.0F, 1.0F, 1.0F, kInf, kNan}, y);
  EXPECT_TRUE(SameBits(std::vector<float>(y.begin(), y.end() - 1),
                       {kMaxFloat, -kMaxFloat, 0.0F, kInf, -kInf, kMaxFloat, kInf}));
  EXPECT_TRUE(std::isnan(y.back()));
}

void ExpectRefAgrees(In x, const Backend& backend = kBackend) {
  for (float weight : {1.0F, -1.0F, 0.3F}) {
    std::vector<float> y = MakeInput(Pattern::kNormal, x.size(), 7);
    std::vector<float> expected = y;
    subject::AddScaled(backend, x, weight, y);
    ref::AddScaled(kBackend, x, weight, expected);
    EXPECT_TRUE(SameBits(y, expected));
    subject::AddSaturated(backend, x, y);
    ref::AddSaturated(kBackend, x, expected);
    EXPECT_TRUE(SameBits(y, expected));
    EXPECT_EQ(RunDivide(subject::Divide, 3.0F, y, backend), RunDivide(ref::Divide, 3.0F, expected));
    EXPECT_TRUE(SameBits(y, expected));
    subject::Fill(backend, weight, y);
    ref::Fill(kBackend, weight, expected);
    EXPECT_TRUE(SameBits(y, expected));
  }
}

TEST(ElementwiseTest, EveryInputAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectRefAgrees(x); });
}

TEST(ElementwiseTest, ThreadsChangeNothing) {
  FourThreads threads;
  ExpectRefAgrees(MakeInput(Pattern::kExponents, kManyTasks), threads.backend());
}

TEST(ElementwiseTest, StreamedOutputsAreTheSame) {
  FourThreads threads;
  for (std::size_t offset : {0, 1, 7}) {
    std::vector<float> y(Streamed(), 2.0F), expected(Streamed(), 2.0F);
    subject::Fill(threads.backend(), -0.0F, Out(y).subspan(offset));
    ref::Fill(kBackend, -0.0F, Out(expected).subspan(offset));
    EXPECT_TRUE(SameBits(y, expected));
  }
}

// At every place of a group and of what is left over, alone and beside others.
TEST(ElementwiseTest, SaturatesAndCountsAtEveryPlace) {
  constexpr std::size_t kN = 150;
  for (std::size_t at = 0; at < kN; ++at) {
    std::vector<float> x(kN, 1.0F), y(kN, 1.0F), expected(kN, 2.0F);
    x[at] = y[at] = expected[at] = -kMaxFloat;
    subject::AddSaturated(kBackend, x, y);
    EXPECT_TRUE(SameBits(y, expected)) << at;
    EXPECT_EQ(RunDivide(subject::Divide, 2.0F, y), 0U);
    EXPECT_EQ(Count(subject::CountNonFinite, In(y)), 0U);
    EXPECT_EQ(RunDivide(subject::Divide, 0x1p-20F, y), 1U) << at;
    EXPECT_EQ(Count(subject::CountNonFinite, In(y)), 1U) << at;
    y.front() = kNan;
    EXPECT_EQ(RunDivide(subject::Divide, 2.0F, y), at == 0 ? 1U : 2U) << at;
  }
}

TEST(ElementwiseTest, CountsNansAndInfinities) {
  const std::vector<float> x = {0.0F,      kInf,        -kInf,     kNan, FromBits(0xFF800001),
                                kMaxFloat, FromBits(1), -kMaxFloat};
  EXPECT_EQ(Count(subject::CountNonFinite, In(x)), 4U);
  for (std::size_t n = 0; n <= 8; ++n) {
    const In part = In(x).first(n);
    EXPECT_EQ(Count(subject::CountNonFinite, part), Count(ref::CountNonFinite, part)) << n;
  }
}

TEST(ElementwiseTest, CountsInEveryCodeOf16Bits) {
  std::vector<std::uint16_t> codes(65536);
  for (std::uint32_t code = 0; code < 65536; ++code) codes[code] = static_cast<std::uint16_t>(code);
  for (std::size_t n : {0, 1, 1023, 1024, 1025, 40000}) {
    // From an odd element on: half of a word of the other widths.
    const ConstView half(codes.data() + 30001, std::min<std::size_t>(n, 35535), DType::kF16,
                         Device::kCpu);
    EXPECT_EQ(Count(subject::CountNonFinite, half), Count(ref::CountNonFinite, half)) << n;
  }
  const ConstView half(codes.data(), codes.size(), DType::kF16, Device::kCpu);
  const ConstView brain(codes.data(), codes.size(), DType::kBF16, Device::kCpu);
  EXPECT_EQ(Count(subject::CountNonFinite, half), 2U * 1024);
  EXPECT_EQ(Count(subject::CountNonFinite, brain), 2U * 128);
  EXPECT_EQ(Count(ref::CountNonFinite, half), 2U * 1024);
  EXPECT_EQ(Count(ref::CountNonFinite, brain), 2U * 128);
}

TEST(ElementwiseTest, CountsAcrossTasks) {
  FourThreads threads;
  std::vector<float> x = MakeInput(Pattern::kNormal, kManyTasks);
  for (std::size_t i = 0; i < x.size(); i += 997) x[i] = kNan;
  x.back() = kInf;
  const std::uint64_t expected = Count(ref::CountNonFinite, In(x));
  EXPECT_EQ(expected, (kManyTasks - 1) / 997 + 2);
  EXPECT_EQ(Count(subject::CountNonFinite, In(x)), expected);
  EXPECT_EQ(Count(subject::CountNonFinite, In(x), threads.backend()), expected);
  EXPECT_EQ(RunDivide(subject::Divide, 2.0F, x, threads.backend()), expected);
}

TEST(ElementwiseTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  Backend backend;
  backend.only_if = &never;
  const std::vector<float> x(5000, kInf), before(5000, 2.0F);
  std::vector<float> y = before;
  subject::Fill(backend, 1.0F, y);
  subject::AddScaled(backend, x, 1.0F, y);
  subject::AddSaturated(backend, x, y);
  EXPECT_EQ(RunDivide(subject::Divide, 3.0F, y, backend), 99U);
  EXPECT_EQ(Count(subject::CountNonFinite, In(x), backend), 99U);
  EXPECT_TRUE(SameBits(y, before));
  backend.only_if = &always;
  subject::AddScaled(backend, x, 1.0F, y);
  EXPECT_TRUE(SameBits(y, x));
  EXPECT_EQ(RunDivide(subject::Divide, 3.0F, y, backend), 5000U);
  EXPECT_EQ(Count(subject::CountNonFinite, In(x), backend), 5000U);
}

// Both spans begin within 16 bytes, or one does.
TEST(ElementwiseTest, AnyPairOfStarts) {
  const std::vector<float> memory = MakeInput(Pattern::kExponents, 5003);
  for (std::size_t from : {0, 1, 2}) {
    for (std::size_t to : {0, 1, 2}) {
      std::vector<float> y(5003, 3e38F), expected = y;
      const In x = In(memory).subspan(from, 5000);
      subject::AddSaturated(kBackend, x, Out(y).subspan(to, 5000));
      ref::AddSaturated(kBackend, x, Out(expected).subspan(to, 5000));
      EXPECT_TRUE(SameBits(y, expected)) << from << " to " << to;
    }
  }
}

TEST(ElementwiseTest, CopiesOfBytesKeepEveryOne) {
  std::vector<std::byte> memory(5000);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const std::size_t n : {0, 1, 15, 16, 17, 255, 4096, 4900}) {
    for (std::size_t from = 0; from < 17; ++from) {
      const std::size_t to = from % 3 == 0 ? 0 : 33 - from;
      std::vector<std::byte> copy(memory.size(), std::byte{9}), expected = copy;
      subject::CopyBytes(kBackend, std::span<const std::byte>(memory).subspan(from, n),
                         std::span(copy).subspan(to, n));
      ref::CopyBytes(kBackend, std::span<const std::byte>(memory).subspan(from, n),
                     std::span(expected).subspan(to, n));
      EXPECT_EQ(copy, expected) << n << " bytes from " << from << " to " << to;
    }
  }
}

TEST(ElementwiseDeathTest, MistakesOfTheCallerStop) {
  std::vector<float> x(3), y(4);
  EXPECT_DEATH(subject::AddScaled(kBackend, x, 1, y), "check failed");
  EXPECT_DEATH(subject::AddSaturated(kBackend, x, y), "check failed");
  const std::vector<std::int32_t> integers(4);
  EXPECT_DEATH(
      Count(subject::CountNonFinite, ConstView(integers.data(), 4, DType::kI32, Device::kCpu)),
      "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
