#include "kernels/quantize.h"

#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

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
  subject::Int8DecodeAdd(kBackend, code.codes, code.absmax, block, 1.0F, y);
  return y;
}

TEST(Int8Test, NearestLiterals) {
  const std::vector<float> x = {127,   -127,     0.5F,   1.5F,   2.5F, -0.5F,
                                -1.5F, 0.50001F, 126.5F, 125.5F, -0.0F};
  const Int8 code = Apply(subject::Int8Encode, x, 16, Rounding::kNearest);
  EXPECT_EQ(code.codes, (std::vector<std::int8_t>{127, -127, 0, 2, 2, 0, -2, 1, 126, 126, 0}));
  EXPECT_EQ(code.absmax, std::vector<float>{127});
  EXPECT_EQ(Decode(code, 16), (std::vector<float>{127, -127, 0, 2, 2, 0, -2, 1, 126, 126, 0}));
}

TEST(Int8Test, BlocksHaveTheirOwnScale) {
  const Int8 code =
      Apply(subject::Int8Encode, std::vector<float>{1, -2, 0, 0, 508, 4}, 2, Rounding::kNearest);
  EXPECT_EQ(code.absmax, (std::vector<float>{2, 0, 508}));
  EXPECT_EQ(code.codes, (std::vector<std::int8_t>{64, -127, 0, 0, 127, 1}));
  std::vector<float> y(6, 1.0F);
  subject::Int8DecodeAdd(kBackend, code.codes, code.absmax, 2, 0.25F, y);
  EXPECT_EQ(y, (std::vector<float>{1 + 0.25F * (64 * (2.0F / 127)),
                                   1 + 0.25F * (-127 * (2.0F / 127)), 1, 1, 128, 2}));
}

// A dither of d = (r + 0.5) / 2^16 turns v into floor(v + d).
TEST(Int8Test, StochasticCodesFollowTheStream) {
  std::vector<float> x(2000, 0.25F);
  x[0] = 127.0F;  // the unit is 1
  const Int8 code = Apply(subject::Int8Encode, x, x.size(), Rounding::kStochastic);
  EXPECT_EQ(code.codes[0], 127);
  for (std::size_t i = 1; i < x.size(); ++i)
    EXPECT_EQ(code.codes[i], Random16(kKey, i) >= 49152 ? 1 : 0) << i;
}

// For every magnitude, the error is within half a unit (one unit for stochastic rounding), nothing
// is NaN or infinite.
TEST(Int8Test, ErrorStaysWithinTheUnit) {
  ForEveryInput([](In x) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      const Int8 code = Apply(subject::Int8Encode, x, 64, rounding);
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
        Apply(subject::Int8Encode, std::vector<float>{value, -value, 0.0F}, 3, Rounding::kNearest);
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

  std::vector<float> z(4);
  subject::Int4Decode(kBackend, std::vector<std::uint8_t>{0x18, 0x01},
                      std::vector<float>{7.0F, kInf}, 2, 1.0F, z);
  EXPECT_EQ(z[0], -7.0F);
  EXPECT_EQ(z[1], 1.0F);
  EXPECT_FALSE(std::isfinite(z[2]));
  EXPECT_FALSE(std::isfinite(z[3]));
}

TEST(QuantizeTest, FeedbackIsTheThreePasses) {
  const std::vector<float> x = {1.0F, -2.0F, 3.0F, kMaxFloat, -kMaxFloat, 0.0F};
  std::vector<float> residual = {0.5F, 0.25F, -3.0F, kMaxFloat, 0.0F, -0.0F};
  std::vector<std::int8_t> codes(6);
  std::vector<float> absmax(2);
  subject::Int8EncodeFeedback(kBackend, x, residual, 3, Rounding::kNearest, kKey, codes, absmax);
  EXPECT_EQ(codes, (std::vector<std::int8_t>{109, -127, 0, 127, -127, 0}));
  EXPECT_EQ(absmax, (std::vector<float>{1.75F, kMaxFloat}));
  const float unit = 1.75F / 127;
  EXPECT_EQ(residual[0], 1.5F - 109 * unit);
  EXPECT_EQ(residual[1], -1.75F + 127 * unit);
  EXPECT_TRUE(SameBits(std::vector<float>{residual[5]}, {0.0F}));
}

TEST(Int4Test, Literals) {
  const std::vector<float> x = {7, -7, 0.5F, 1.5F, -1.0F, 2.5F, 3.49F, -0.5F, -6.6F};
  std::vector<std::uint8_t> codes(5);
  std::vector<float> absmax(1);
  subject::Int4Encode(kBackend, x, 16, Rounding::kNearest, kKey, codes, absmax);
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{0x97, 0x20, 0x2F, 0x03, 0x09}));
  EXPECT_EQ(absmax, std::vector<float>{7});
  std::vector<float> y(9, 50.0F);
  subject::Int4Decode(kBackend, codes, absmax, 16, -1.0F, y);
  EXPECT_TRUE(SameBits(y, {-7, 7, 0, -2, 1, -2, -3, 0, 7}));
  subject::Int4DecodeAdd(kBackend, codes, absmax, 16, 2.0F, y);
  EXPECT_EQ(y, (std::vector<float>{7, -7, 0, 2, -1, 2, 3, 0, -7}));
}

TEST(Int4Test, SpareNibblesAreNeverRead) {
  std::vector<float> clean(3), y(3);
  const std::vector<float> absmax = {7.0F, 14.0F};
  subject::Int4Decode(kBackend, std::vector<std::uint8_t>{0x21, 0x03}, absmax, 2, 1.0F, clean);
  subject::Int4Decode(kBackend, std::vector<std::uint8_t>{0x21, 0xF3}, absmax, 2, 1.0F, y);
  EXPECT_EQ(clean, (std::vector<float>{1, 2, 6}));
  EXPECT_EQ(y, clean);
}

// What is not finite reaches a group's padding: 0 times infinity, whatever that becomes.
TEST(Int4Test, SpareNibblesAreZero) {
  for (const float value : {1.0F, -7.0F, kInf, -kInf, kNan}) {
    for (const std::size_t n : {1, 63, 65, 129, 257}) {
      for (const Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
        std::vector<float> x(n, 1.0F), residual(n, 0.0F), absmax(BlockCount(n, 64));
        x[n / 2] = x[n - 1] = value;
        std::vector<std::uint8_t> codes(Int4Bytes(n), 0xFF);
        subject::Int4Encode(kBackend, x, 64, rounding, kKey, codes, absmax);
        EXPECT_EQ(codes.back() >> 4, 0) << value << ", n = " << n;
        codes.back() = 0xFF;
        subject::Int4EncodeFeedback(kBackend, x, residual, 64, rounding, kKey, codes, absmax);
        EXPECT_EQ(codes.back() >> 4, 0) << value << ", n = " << n << ", feedback";
      }
    }
  }
}

// Mean code of each of 8 fractional values over 40000 keys against the value. The standard error is
// at most 0.5 / 200 = 0.0025; the limit of 4.5 of them (false alarm below 1e-5 a value, and the
// keys are fixed) notices a bias of 0.02 units with a probability above 99.9 %: (0.02 - 0.01125) /
// 0.0025 = 3.5.
TEST(Int8Test, StochasticRoundingIsUnbiased) {
  const std::vector<float> x = {127, 0.1F, -0.1F, 0.5F, -0.75F, 126.3F, -99.9F, 1e-3F, 0.25F};
  const int keys = OnCuda() ? 1000 : 40000;  // a launch a key
  std::vector<double> sum(x.size());
  for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(keys); ++step) {
    const Int8 code = Apply(subject::Int8Encode, x, x.size(), Rounding::kStochastic, {99, step});
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += code.codes[i];
  }
  EXPECT_EQ(sum[0], 127.0 * keys);
  for (std::size_t i = 1; i < x.size(); ++i) {
    const double fraction = x[i] - std::floor(x[i]);
    const double error = std::sqrt(fraction * (1 - fraction) / keys);
    EXPECT_NEAR(sum[i] / keys, x[i], 4.5 * error) << x[i];
  }
}

TEST(QuantizeDeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(9);
  std::vector<std::int8_t> codes(9), few(8);
  std::vector<std::uint8_t> nibbles(5), few_nibbles(4);
  std::vector<float> absmax(3), wrong(2), five(5), residual(9), short_residual(8);
  constexpr Rounding kNearest = Rounding::kNearest;
  EXPECT_DEATH(subject::Int8Encode(kBackend, x, 0, kNearest, kKey, codes, absmax), "check failed");
  EXPECT_DEATH(subject::Int8Encode(kBackend, x, 3, kNearest, kKey, few, absmax), "check failed");
  EXPECT_DEATH(subject::Int8Encode(kBackend, x, 3, kNearest, kKey, codes, wrong), "check failed");
  EXPECT_DEATH(
      subject::Int8EncodeFeedback(kBackend, x, short_residual, 3, kNearest, kKey, codes, absmax),
      "check failed");
  EXPECT_DEATH(subject::Int8DecodeAdd(kBackend, few, absmax, 3, 1.0F, residual), "check failed");
  EXPECT_DEATH(subject::Int4Encode(kBackend, x, 3, kNearest, kKey, nibbles, absmax),
               "check failed");
  EXPECT_DEATH(subject::Int4Encode(kBackend, x, 2, kNearest, kKey, few_nibbles, five),
               "check failed");
  EXPECT_DEATH(
      subject::Int4EncodeFeedback(kBackend, x, short_residual, 2, kNearest, kKey, nibbles, five),
      "check failed");
  EXPECT_DEATH(subject::Int4Decode(kBackend, nibbles, absmax, 3, 1.0F, residual), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
