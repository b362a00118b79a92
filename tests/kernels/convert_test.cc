#include "kernels/convert.h"

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

struct Narrowed {
  std::vector<std::uint16_t> codes;
  std::uint64_t overflowed = 0;

  bool operator==(const Narrowed&) const = default;
};

template <class Bits, class Function>
Narrowed RunNarrow(Function function, In x, Overflow overflow, const Backend& backend = kBackend) {
  std::vector<Bits> codes(x.size());
  Narrowed result;
  function(backend, x, std::span<Bits>(codes), overflow, &result.overflowed);
  for (Bits code : codes) result.codes.push_back(static_cast<std::uint16_t>(code));
  return result;
}

Narrowed Half(In x, Overflow overflow = Overflow::kInfinity) {
  return RunNarrow<half_bits>(subject::F32ToF16, x, overflow);
}

Narrowed Brain(In x, Overflow overflow = Overflow::kInfinity) {
  return RunNarrow<bfloat16_bits>(subject::F32ToBF16, x, overflow);
}

void ExpectRefAgrees(In x, const Backend& backend = kBackend) {
  for (Overflow overflow : {Overflow::kSaturate, Overflow::kInfinity}) {
    EXPECT_TRUE(RunNarrow<half_bits>(subject::F32ToF16, x, overflow, backend) ==
                RunNarrow<half_bits>(ref::F32ToF16, x, overflow));
    EXPECT_TRUE(RunNarrow<bfloat16_bits>(subject::F32ToBF16, x, overflow, backend) ==
                RunNarrow<bfloat16_bits>(ref::F32ToBF16, x, overflow));
  }
}

struct Fed {
  Narrowed narrowed;
  std::vector<float> residual;
};

template <class Bits, class Function>
Fed RunFeedback(Function function, In x, std::vector<float> residual, Overflow overflow,
                const Backend& backend = kBackend) {
  Fed fed = {{}, std::move(residual)};
  fed.narrowed = RunNarrow<Bits>(
      [&](const Backend& b, In in, std::span<Bits> to, Overflow o, std::uint64_t* overflowed) {
        function(b, in, Out(fed.residual), to, o, overflowed);
      },
      x, overflow, backend);
  return fed;
}

template <class Bits, class Function, class Reference>
void ExpectSameFeedback(Function function, Reference reference, In x, const Backend& backend) {
  // A residual of the same kind, so that sums overflow where the values are huge.
  std::vector<float> residual(x.rbegin(), x.rend());
  for (Overflow overflow : {Overflow::kSaturate, Overflow::kInfinity}) {
    const Fed fed = RunFeedback<Bits>(function, x, residual, overflow, backend);
    const Fed expected = RunFeedback<Bits>(reference, x, residual, overflow);
    EXPECT_TRUE(fed.narrowed == expected.narrowed);
    EXPECT_TRUE(SameBits(fed.residual, expected.residual));
  }
}

void ExpectRefAgreesWithFeedback(In x, const Backend& backend = kBackend) {
  ExpectSameFeedback<half_bits>(subject::F32ToF16Feedback, ref::F32ToF16Feedback, x, backend);
  ExpectSameFeedback<bfloat16_bits>(subject::F32ToBF16Feedback, ref::F32ToBF16Feedback, x, backend);
}

TEST(ConvertTest, LiteralHalves) {
  const std::vector<std::array<std::uint32_t, 2>> cases = {
      {0x33000000, 0x0000}, {0x33000001, 0x0001}, {0x33400000, 0x0001}, {0x33C00000, 0x0002},
      {0x477FEFFF, 0x7BFF}, {0x477FF000, 0x7C00}, {0x3F800000, 0x3C00}, {0xBF800000, 0xBC00},
      {0x3F801000, 0x3C00}, {0x3F803000, 0x3C02}, {0x38800000, 0x0400}, {0x387FF000, 0x0400},
      {0x387FEFFF, 0x0400}, {0x387FDFFF, 0x03FF}, {0x33800000, 0x0001}, {0x80000000, 0x8000},
      {0x00000001, 0x0000}, {0x7F800000, 0x7C00}, {0xFF800000, 0xFC00}, {0x7F800001, 0x7E00},
      {0xFFC01234, 0xFE00}, {0x7F7FFFFF, 0x7C00}, {0xC77FF000, 0xFC00}, {0x477FE000, 0x7BFF},
      {0x7FFFFFFF, 0x7E00},
  };
  for (const auto& [in, code] : cases) {
    const float x = FromBits(in);
    EXPECT_EQ(Half({&x, 1}).codes[0], code) << std::hex << in;
    EXPECT_EQ(RunNarrow<half_bits>(ref::F32ToF16, In(&x, 1), Overflow::kInfinity).codes[0], code)
        << std::hex << in;
  }
}

TEST(ConvertTest, LiteralBFloats) {
  const std::vector<std::array<std::uint32_t, 2>> cases = {
      {0x7F800001, 0x7FC0}, {0x3E89CCD5, 0x3E8A}, {0x7F7FFFFF, 0x7F80}, {0x3F808000, 0x3F80},
      {0x3F818000, 0x3F82}, {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001},
      {0x80018000, 0x8002}, {0x7F7F7FFF, 0x7F7F}, {0x7F7F8000, 0x7F80}, {0xFF7F8000, 0xFF80},
      {0x7F800000, 0x7F80}, {0xFFFFFFFF, 0xFFC0}, {0x80000000, 0x8000},
  };
  for (const auto& [in, code] : cases) {
    const float x = FromBits(in);
    EXPECT_EQ(Brain({&x, 1}).codes[0], code) << std::hex << in;
    EXPECT_EQ(RunNarrow<bfloat16_bits>(ref::F32ToBF16, In(&x, 1), Overflow::kInfinity).codes[0],
              code)
        << std::hex << in;
  }
}

TEST(ConvertTest, SaturationKeepsInfinitiesAndCountsFiniteValuesOnly) {
  const std::vector<float> x = {65519.0F, 65520.0F, -1e9F, kInf, -kInf, kNan, kMaxFloat, 1.0F};
  EXPECT_EQ(Half(x, Overflow::kSaturate),
            (Narrowed{{0x7BFF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0x3C00}, 3}));
  EXPECT_EQ(Half(x, Overflow::kInfinity),
            (Narrowed{{0x7BFF, 0x7C00, 0xFC00, 0x7C00, 0xFC00, 0x7E00, 0x7C00, 0x3C00}, 3}));
  const std::vector<float> y = {kMaxFloat, -kMaxFloat, kInf, 3e38F};
  EXPECT_EQ(Brain(y, Overflow::kSaturate), (Narrowed{{0x7F7F, 0xFF7F, 0x7F80, 0x7F62}, 2}));
  EXPECT_EQ(Brain(y, Overflow::kInfinity), (Narrowed{{0x7F80, 0xFF80, 0x7F80, 0x7F62}, 2}));
}

// Every code of both formats, widened and narrowed again.
TEST(ConvertTest, AllCodesWidenAsTheReferenceDoesAndComeBack) {
  std::vector<half_bits> halves(65536);
  std::vector<bfloat16_bits> brains(65536);
  for (std::uint32_t code = 0; code < 65536; ++code) {
    halves[code] = static_cast<half_bits>(code);
    brains[code] = static_cast<bfloat16_bits>(code);
  }
  std::vector<float> wide(65536), expected(65536);
  subject::F16ToF32(kBackend, halves, wide);
  ref::F16ToF32(kBackend, halves, expected);
  EXPECT_TRUE(SameBits(wide, expected));
  const Narrowed back = Half(wide, Overflow::kSaturate);
  for (std::uint32_t code = 0; code < 65536; ++code)
    EXPECT_EQ(back.codes[code], (code & 0x7FFF) > 0x7C00 ? (code & 0x8000) | 0x7E00 : code);
  EXPECT_EQ(back.overflowed, 0U);

  subject::BF16ToF32(kBackend, brains, wide);
  ref::BF16ToF32(kBackend, brains, expected);
  EXPECT_TRUE(SameBits(wide, expected));
  const Narrowed back_again = Brain(wide, Overflow::kSaturate);
  for (std::uint32_t code = 0; code < 65536; ++code)
    EXPECT_EQ(back_again.codes[code], (code & 0x7FFF) > 0x7F80 ? (code & 0x8000) | 0x7FC0 : code);
  EXPECT_EQ(back_again.overflowed, 0U);
}

TEST(ConvertTest, LiteralWidening) {
  const std::vector<half_bits> halves = {half_bits{0x0001}, half_bits{0x83FF}, half_bits{0x0400},
                                         half_bits{0x7BFF}, half_bits{0xFC00}, half_bits{0x7C01},
                                         half_bits{0x8000}, half_bits{0xFE00}};
  std::vector<float> wide(halves.size());
  subject::F16ToF32(kBackend, halves, wide);
  EXPECT_EQ(wide[0], 0x1p-24F);
  EXPECT_EQ(wide[1], -1023 * 0x1p-24F);
  EXPECT_EQ(wide[2], 0x1p-14F);
  EXPECT_EQ(wide[3], 65504.0F);
  EXPECT_EQ(wide[4], -kInf);
  EXPECT_EQ(ToBits(wide[5]), 0x7FC00000U);
  EXPECT_EQ(ToBits(wide[6]), 0x80000000U);
  EXPECT_EQ(ToBits(wide[7]), 0xFFC00000U);
}

template <class Bits, class Function, class Reference>
void ExpectSameDecoding(Function function, Reference reference, std::span<const Bits> codes,
                        const Backend& backend = kBackend) {
  for (float weight : {1.0F, -1.0F, 0.3F}) {
    std::vector<float> y = MakeInput(Pattern::kNormal, codes.size(), 5), expected = y;
    function(backend, codes, weight, Out(y));
    reference(backend, codes, weight, Out(expected));
    EXPECT_TRUE(SameBitsOrNans(y, expected)) << "weight " << weight;
  }
}

template <class Bits>
std::vector<Bits> AllCodes() {
  std::vector<Bits> codes;
  for (std::uint32_t code = 0; code < 65536; ++code) codes.push_back(static_cast<Bits>(code));
  codes.resize(65536 - 5);  // ends within a group
  return codes;
}

TEST(ConvertTest, AllCodesDecodeAsTheReferenceDoes) {
  const std::vector<half_bits> halves = AllCodes<half_bits>();
  const std::vector<bfloat16_bits> brains = AllCodes<bfloat16_bits>();
  for (std::size_t offset : {0, 1, 5}) {
    const auto half = std::span<const half_bits>(halves).subspan(offset);
    const auto brain = std::span<const bfloat16_bits>(brains).subspan(offset);
    ExpectSameDecoding<half_bits>(subject::F16Decode, ref::F16Decode, half);
    ExpectSameDecoding<half_bits>(subject::F16DecodeAdd, ref::F16DecodeAdd, half);
    ExpectSameDecoding<bfloat16_bits>(subject::BF16Decode, ref::BF16Decode, brain);
    ExpectSameDecoding<bfloat16_bits>(subject::BF16DecodeAdd, ref::BF16DecodeAdd, brain);
  }
}

TEST(ConvertTest, DecodingAddsOrOverwrites) {
  const std::vector<half_bits> codes = {half_bits{0x3C00}, half_bits{0x8000}};
  std::vector<float> y = {10.0F, -0.0F};
  subject::F16DecodeAdd(kBackend, codes, -2.0F, y);
  EXPECT_TRUE(SameBits(y, {8.0F, 0.0F}));
  subject::F16Decode(kBackend, codes, 1.0F, y);
  EXPECT_TRUE(SameBits(y, {1.0F, 0.0F}));  // 0 + -0 is +0
}

// All signs and exponents with fractions around every place where the rounding of either format
// changes its mind.
TEST(ConvertTest, AllExponentsNarrowAsTheReferenceDoes) {
  std::vector<float> x;
  for (std::uint32_t head = 0; head < 512; ++head) {
    x.clear();
    for (std::uint32_t high = 0; high < 1024; ++high)
      for (std::uint32_t low : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU})
        x.push_back(FromBits(head << 23 | high << 13 | low));
    ASSERT_NO_FATAL_FAILURE(ExpectRefAgrees(x)) << "sign and exponent " << head;
    if (HasFailure()) break;
  }
}

TEST(ConvertTest, EveryInputNarrowsAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectRefAgrees(x); });
}

TEST(ConvertTest, EveryInputIsFedBackAsTheReferenceDoes) {
  ForEveryInput([](In x) { ExpectRefAgreesWithFeedback(x); });
}

TEST(ConvertTest, WhatIsFedBackIsWhatTheCodeLeavesOver) {
  const Fed fed =
      RunFeedback<half_bits>(subject::F32ToF16Feedback, std::vector<float>{1.0F, 7e4F, kMaxFloat},
                             {0x1p-12F, 0.0F, kMaxFloat}, Overflow::kSaturate);
  EXPECT_EQ(fed.narrowed, (Narrowed{{0x3C00, 0x7BFF, 0x7BFF}, 2}));
  EXPECT_EQ(fed.residual, (std::vector<float>{0x1p-12F, 7e4F - 65504, kMaxFloat}));
}

TEST(ConvertTest, CopiesKeepEveryBit) {
  FourThreads threads;
  const std::vector<float> memory = MakeInput(Pattern::kExponents, Streamed());
  for (std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{1000}, memory.size() - 7}) {
    for (std::size_t offset : {0, 1, 7}) {
      std::vector<float> to(memory.size(), 5.0F), expected = to;
      const In from = In(memory).subspan(7 - offset, n);
      subject::Copy(threads.backend(), from, Out(to).subspan(offset, n));
      std::copy(from.begin(), from.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      EXPECT_TRUE(SameBits(to, expected)) << n << " from " << offset;
    }
  }
}

TEST(ConvertTest, StreamedOutputsAreTheSame) {
  FourThreads threads;
  for (std::size_t offset : {0, 1, 7}) {
    const std::vector<float> memory = MakeInput(Pattern::kExponents, Streamed());
    const In x = In(memory).subspan(offset);
    ExpectRefAgrees(x, threads.backend());
    std::vector<half_bits> codes(memory.size());
    subject::F32ToF16(kBackend, memory, codes, Overflow::kSaturate, nullptr);
    std::vector<float> wide(memory.size()), expected(memory.size());
    // Outputs that begin within a cache line.
    const std::span<const half_bits> from = std::span(codes).subspan(offset);
    subject::F16ToF32(threads.backend(), from, Out(wide).subspan(offset));
    ref::F16ToF32(kBackend, from, Out(expected).subspan(offset));
    EXPECT_TRUE(SameBits(wide, expected));
    ExpectSameDecoding<half_bits>(subject::F16Decode, ref::F16Decode, from, threads.backend());
    ExpectSameDecoding<half_bits>(subject::F16DecodeAdd, ref::F16DecodeAdd, from,
                                  threads.backend());
  }
}

TEST(ConvertTest, ThreadsChangeNothing) {
  FourThreads threads;
  for (Pattern pattern : {Pattern::kExponents, Pattern::kHuge}) {
    const std::vector<float> x = MakeInput(pattern, kManyTasks);
    ExpectRefAgrees(x, threads.backend());
  }
}

TEST(ConvertTest, ViewsConvertByTheirDType) {
  const std::vector<float> x = {1.0F, -0.0F, 70000.0F, FromBits(0x7F800001)};
  std::vector<float> same(4), wide(4);
  std::uint64_t overflowed = 0;
  subject::Narrow(kBackend, x, View(Out(same)), Overflow::kSaturate, &overflowed);
  EXPECT_EQ(overflowed, 0U);
  EXPECT_TRUE(SameBits(x, same));
  subject::Widen(kBackend, ConstView(In(x)), wide);
  EXPECT_TRUE(SameBits(x, wide));
  ref::Copy(kBackend, x, same);
  EXPECT_TRUE(SameBits(x, same));

  std::vector<half_bits> halves(4);
  const View half_view(halves.data(), 4, DType::kF16, Device::kCpu);
  subject::Narrow(kBackend, x, half_view, Overflow::kSaturate, &overflowed);
  EXPECT_EQ(overflowed, 1U);
  subject::Widen(kBackend, ConstView(halves.data(), 4, DType::kF16, Device::kCpu), wide);
  EXPECT_EQ(wide[2], 65504.0F);

  std::vector<bfloat16_bits> brains(4);
  subject::Narrow(kBackend, x, View(brains.data(), 4, DType::kBF16, Device::kCpu),
                  Overflow::kSaturate, &overflowed);
  EXPECT_EQ(overflowed, 1U);  // added to, and none more
  subject::Widen(kBackend, ConstView(brains.data(), 4, DType::kBF16, Device::kCpu), wide);
  EXPECT_EQ(wide[2], 70144.0F);
  EXPECT_TRUE(std::isnan(wide[3]));
}

TEST(ConvertTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  const std::vector<float> x(5000, 3.0F);
  for (const std::uint64_t* only_if : {&never, &always}) {
    Backend backend;
    backend.only_if = only_if;
    std::vector<float> residual(5000, 1.0F), wide(5000, 9.0F), copy(5000, 9.0F);
    std::vector<half_bits> codes(5000, half_bits{0x1234});
    subject::F32ToF16(backend, x, codes, Overflow::kSaturate, nullptr);
    subject::F16ToF32(backend, codes, wide);
    subject::Copy(backend, x, copy);
    const bool done = only_if == &always;
    EXPECT_EQ(codes[4999], done ? half_bits{0x4200} : half_bits{0x1234});
    EXPECT_EQ(wide[4999], done ? 3.0F : 9.0F);
    EXPECT_EQ(copy[4999], done ? 3.0F : 9.0F);
    subject::F32ToF16Feedback(backend, x, residual, codes, Overflow::kSaturate, nullptr);
    EXPECT_EQ(codes[4999], done ? half_bits{0x4400} : half_bits{0x1234});
    EXPECT_EQ(residual[4999], done ? 0.0F : 1.0F);
  }
}

TEST(ConvertDeathTest, MistakesOfTheCallerStop) {
  std::vector<float> x(3), y(4);
  std::vector<half_bits> halves(4);
  const std::vector<std::int32_t> integers(4);
  EXPECT_DEATH(subject::F32ToF16(kBackend, x, halves, Overflow::kInfinity, nullptr),
               "check failed");
  EXPECT_DEATH(subject::F16ToF32(kBackend, halves, x), "check failed");
  EXPECT_DEATH(
      subject::Widen(kBackend, ConstView(integers.data(), 4, DType::kI32, Device::kCpu), y),
      "check failed");
  EXPECT_DEATH(Widen(kBackend, ConstView(y.data(), 3, DType::kF32, Device::kCuda), x),
               "check failed");
  if (OnCuda()) return;  // this program has the kernels
  Backend cuda;
  cuda.device = Device::kCuda;
  EXPECT_DEATH(Widen(cuda, ConstView(y.data(), 3, DType::kF32, Device::kCuda), x), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
