#include "kernels/quantize.h"

#include "tests/kernels/inputs.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;
const RandomKey kKey = {0x123456789ABCDEF0, 17};

struct Int8 {
  std::vector<std::int8_t> codes;
  std::vector<float> absmax;
};

template <class Function>
Int8 Apply(Function function, In x, std::size_t block, Rounding rounding,
           const RandomKey& key = kKey, const Backend& backend = kBackend) {
  Int8 code = {std::vector<std::int8_t>(x.size(), 99),
               std::vector<float>(BlockCount(x.size(), block), -7.0F)};
  function(backend, x, block, rounding, key, std::span<std::int8_t>(code.codes), Out(code.absmax));
  return code;
}

std::vector<float> Decode(const Int8& code, std::size_t block) {
  std::vector<float> y(code.codes.size());
  Int8DecodeAdd(kBackend, code.codes, code.absmax, block, 1.0F, y);
  return y;
}

TEST(Int8Test, NearestLiterals) {
  const std::vector<float> x = {127,   -127,     0.5F,   1.5F,   2.5F, -0.5F,
                                -1.5F, 0.50001F, 126.5F, 125.5F, -0.0F};
  const Int8 code = Apply(Int8Encode, x, 16, Rounding::kNearest);
  EXPECT_EQ(code.codes, (std::vector<std::int8_t>{127, -127, 0, 2, 2, 0, -2, 1, 126, 126, 0}));
  EXPECT_EQ(code.absmax, std::vector<float>{127});
  EXPECT_EQ(Decode(code, 16), (std::vector<float>{127, -127, 0, 2, 2, 0, -2, 1, 126, 126, 0}));
}

TEST(Int8Test, BlocksHaveTheirOwnScale) {
  const Int8 code =
      Apply(Int8Encode, std::vector<float>{1, -2, 0, 0, 508, 4}, 2, Rounding::kNearest);
  EXPECT_EQ(code.absmax, (std::vector<float>{2, 0, 508}));
  EXPECT_EQ(code.codes, (std::vector<std::int8_t>{64, -127, 0, 0, 127, 1}));
  std::vector<float> y(6, 1.0F);
  Int8DecodeAdd(kBackend, code.codes, code.absmax, 2, 0.25F, y);
  EXPECT_EQ(y, (std::vector<float>{1 + 0.25F * (64 * (2.0F / 127)),
                                   1 + 0.25F * (-127 * (2.0F / 127)), 1, 1, 128, 2}));
}

// A dither of d = (r + 0.5) / 2^16 turns v into floor(v + d).
TEST(Int8Test, StochasticCodesFollowTheStream) {
  std::vector<float> x(2000, 0.25F);
  x[0] = 127.0F;  // the unit is 1
  const Int8 code = Apply(Int8Encode, x, x.size(), Rounding::kStochastic);
  EXPECT_EQ(code.codes[0], 127);
  for (std::size_t i = 1; i < x.size(); ++i)
    EXPECT_EQ(code.codes[i], Random16(kKey, i) >= 49152 ? 1 : 0) << i;
}

// For every magnitude, the error is within half a unit (one unit for stochastic rounding), nothing
// is NaN or infinite.
TEST(Int8Test, ErrorStaysWithinTheUnit) {
  ForEveryInput([](In x) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      const Int8 code = Apply(Int8Encode, x, 64, rounding);
      const std::vector<float> decoded = Decode(code, 64);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double unit = static_cast<double>(code.absmax[i / 64]) / 127;
        const double bound =
            (rounding == Rounding::kNearest ? 0.5 : 1.0) * unit * (1 + 1e-4) + 0x1p-149;
        ASSERT_LE(std::fabs(static_cast<double>(decoded[i]) - static_cast<double>(x[i])), bound)
            << x[i];
      }
    }
  });
}

TEST(Int8Test, ExtremeBlocks) {
  for (float value : {kMaxFloat, 3e38F, 1.0F, 0x1p-96F, 0x1p-97F, 0x1p-126F, 1e-44F, FromBits(1)}) {
    const Int8 code =
        Apply(Int8Encode, std::vector<float>{value, -value, 0.0F}, 3, Rounding::kNearest);
    EXPECT_EQ(code.codes, (std::vector<std::int8_t>{127, -127, 0})) << value;
    EXPECT_EQ(code.absmax, std::vector<float>{value});
    const std::vector<float> y = Decode(code, 3);
    EXPECT_NEAR(y[0] / value, 1.0F, 1e-6F) << value;
    EXPECT_EQ(y[1], -y[0]);
    EXPECT_EQ(y[2], 0.0F);
  }
}

TEST(Int8Test, HostileCodesDecodeWithinReason) {
  const Int8 code = {{-128, 1, 1, 0, 5, 0}, {127.0F, kInf, kNan}};
  const std::vector<float> y = Decode(code, 2);
  EXPECT_EQ(y[0], -127.0F);
  EXPECT_EQ(y[1], 1.0F);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_FALSE(std::isfinite(y[i])) << i;
}

void ExpectRefAgrees(In x, std::size_t block, const Backend& backend = kBackend) {
  for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
    const Int8 code = Apply(cpu::Int8Encode, x, block, rounding, kKey, backend);
    const Int8 expected = Apply(ref::Int8Encode, x, block, rounding);
    EXPECT_TRUE(SameBits(code.codes, expected.codes));
    EXPECT_TRUE(SameBits(code.absmax, expected.absmax));
    std::vector<float> y = MakeInput(Pattern::kNormal, x.size(), 3);
    std::vector<float> y_expected = y;
    cpu::Int8DecodeAdd(backend, code.codes, code.absmax, block, 0.3F, y);
    ref::Int8DecodeAdd(kBackend, code.codes, code.absmax, block, 0.3F, y_expected);
    EXPECT_TRUE(SameBits(y, y_expected));
  }
}

TEST(Int8Test, EveryInputAsTheReferenceDoes) {
  for (std::size_t block : {1, 7, 64, 256, 1 << 20})
    ForEveryInput([=](In x) { ExpectRefAgrees(x, block); });
}

TEST(Int8Test, ThreadsChangeNothing) {
  FourThreads threads;
  for (std::size_t block : {3UL, 1000UL, kManyTasks})
    ExpectRefAgrees(MakeInput(Pattern::kNormal, kManyTasks), block, threads.backend());
}

// Mean code of each of 8 fractional values over 40000 keys against the value. The standard error is
// at most 0.5 / 200 = 0.0025; the limit of 4.5 of them (false alarm below 1e-5 a value, and the
// keys are fixed) notices a bias of 0.02 units with a probability above 99.9 %: (0.02 - 0.01125) /
// 0.0025 = 3.5.
TEST(Int8Test, StochasticRoundingIsUnbiased) {
  const std::vector<float> x = {127, 0.1F, -0.1F, 0.5F, -0.75F, 126.3F, -99.9F, 1e-3F, 0.25F};
  constexpr int kKeys = 40000;
  std::vector<double> sum(x.size());
  for (std::uint64_t step = 0; step < kKeys; ++step) {
    const Int8 code = Apply(Int8Encode, x, x.size(), Rounding::kStochastic, {99, step});
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += code.codes[i];
  }
  EXPECT_EQ(sum[0], 127.0 * kKeys);
  for (std::size_t i = 1; i < x.size(); ++i) {
    const double fraction = x[i] - std::floor(x[i]);
    const double error = std::sqrt(fraction * (1 - fraction) / kKeys);
    EXPECT_NEAR(sum[i] / kKeys, x[i], 4.5 * error) << x[i];
  }
}

TEST(Int8DeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(9);
  std::vector<std::int8_t> codes(9), few(8);
  std::vector<float> absmax(3), wrong(2);
  EXPECT_DEATH(Int8Encode(kBackend, x, 0, Rounding::kNearest, kKey, codes, absmax), "check failed");
  EXPECT_DEATH(Int8Encode(kBackend, x, 3, Rounding::kNearest, kKey, few, absmax), "check failed");
  EXPECT_DEATH(Int8Encode(kBackend, x, 3, Rounding::kNearest, kKey, codes, wrong), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
