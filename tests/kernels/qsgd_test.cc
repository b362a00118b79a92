#include "kernels/qsgd.h"

#include "kernels/elementwise.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;
const RandomKey kKey = {0x123456789ABCDEF0, 17};

struct Code {
  std::vector<std::int8_t> codes;
  std::vector<float> norms;
};

template <class Function>
Code Encode(Function function, In x, std::size_t bucket, int levels, const RandomKey& key = kKey,
            const Backend& backend = kBackend) {
  Code code = {std::vector<std::int8_t>(x.size(), 99),
               std::vector<float>(BlockCount(x.size(), bucket), -7.0F)};
  function(backend, x, bucket, levels, key, std::span<std::int8_t>(code.codes), Out(code.norms));
  return code;
}

template <class Function>
std::vector<float> Decode(Function function, const Code& code, std::size_t bucket, int levels,
                          float weight, std::vector<float> y, const Backend& backend = kBackend) {
  function(backend, std::span<const std::int8_t>(code.codes), In(code.norms), bucket, levels,
           weight, Out(y));
  return y;
}

// 3, 4 and 12 have the norm 13: shares of it that levels hit exactly stay what they are but for
// the dither, which adds less than a level.
TEST(QsgdTest, Literals) {
  const std::vector<float> x = {3, -4, 12, 0, -0.0F};
  const Code code = Encode(subject::QsgdEncode, x, 8, 13);
  EXPECT_EQ(code.norms, std::vector<float>{13});
  EXPECT_EQ(code.codes, (std::vector<std::int8_t>{3, -4, 12, 0, 0}));
  EXPECT_TRUE(SameBits(Decode(subject::QsgdDecode, code, 8, 13, -2.0F, std::vector<float>(5, 9.0F)),
                       {-6, 8, -24, 0, 0}));
  EXPECT_EQ(Decode(subject::QsgdDecodeAdd, code, 8, 13, 2.0F, std::vector<float>(5, 9.0F)),
            (std::vector<float>{15, 1, 33, 9, 9}));
}

// A dither of d = (r + 0.5) / 2^16 turns a share v of the norm into floor(v + d) levels.
TEST(QsgdTest, CodesFollowTheStream) {
  std::vector<float> x(4096, 0.0F);
  x[0] = 4096.0F;
  for (std::size_t i = 1; i < x.size(); ++i) x[i] = i % 2 == 0 ? 1e-3F : -1e-3F;
  const Code code = Encode(subject::QsgdEncode, x, x.size(), 1);
  EXPECT_EQ(code.norms, std::vector<float>{4096});
  EXPECT_EQ(code.codes[0], 1);
  std::vector<float> flat(4096, -0.25F);  // norm 16, 64 levels: one level each
  for (float& value : flat) value *= 1.25F;
  const Code other = Encode(subject::QsgdEncode, flat, flat.size(), 64);
  EXPECT_EQ(other.norms, std::vector<float>{20});
  for (std::size_t i = 0; i < flat.size(); ++i) ASSERT_EQ(other.codes[i], -1) << i;
  const Code quarter = Encode(subject::QsgdEncode, flat, flat.size(), 16);
  for (std::size_t i = 0; i < flat.size(); ++i)
    ASSERT_EQ(quarter.codes[i], Random16(kKey, i) >= 49152 ? -1 : 0) << i;
}

// Squares that overflow or lose bits, and norms beyond the largest float.
TEST(QsgdTest, ExtremeNorms) {
  for (float value : {1e30F, 0x1p-70F, 0x1p-80F, 0x1p-126F, 0x1p-140F, FromBits(1)}) {
    const Code code =
        Encode(subject::QsgdEncode, std::vector<float>{3 * value, -4 * value, 0.0F}, 3, 5);
    EXPECT_EQ(code.codes, (std::vector<std::int8_t>{3, -4, 0})) << value;
    EXPECT_NEAR(code.norms[0] / (5 * value), 1.0F, 1e-6F) << value;
  }
  const Code huge = Encode(subject::QsgdEncode, std::vector<float>(100, -kMaxFloat), 100, 127);
  EXPECT_EQ(huge.norms, std::vector<float>{kMaxFloat});
  EXPECT_EQ(huge.codes, std::vector<std::int8_t>(100, -127));
  EXPECT_EQ(Decode(subject::QsgdDecode, huge, 100, 127, 1.0F, std::vector<float>(100)),
            std::vector<float>(100, -kMaxFloat));
  // Exact in fp64, where fp32 squares are subnormal: 2^-74 twice.
  EXPECT_EQ(Encode(subject::QsgdEncode, std::vector<float>{0x1.8p-74F, 0x1p-73F}, 2, 5).norms,
            std::vector<float>{0x1.4p-73F});
}

// 2^24 + 1 rounds to 2^24: ones in the lane of 2^24 vanish one by one, those of other lanes arrive
// together.
TEST(QsgdTest, NormsHaveTheShapeOfLaneSums) {
  std::vector<float> same_lane(4096), all_lanes(4096);
  for (std::size_t i = 64; i < 4096; ++i) {
    same_lane[i] = i % 64 == 0 ? 1.0F : 0.0F;
    all_lanes[i] = 1.0F;
  }
  same_lane[0] = all_lanes[0] = 0x1p12F;
  EXPECT_EQ(Encode(subject::QsgdEncode, same_lane, 4096, 1).norms[0], 0x1p12F);
  EXPECT_EQ(Encode(subject::QsgdEncode, all_lanes, 4096, 1).norms[0], 0x1.0007cp12F);
}

void ExpectRefAgrees(In x, std::size_t bucket, int levels, const Backend& backend = kBackend) {
  const Code code = Encode(subject::QsgdEncode, x, bucket, levels, kKey, backend);
  const Code expected = Encode(ref::QsgdEncode, x, bucket, levels);
  EXPECT_TRUE(SameBits(code.codes, expected.codes));
  EXPECT_TRUE(SameBits(code.norms, expected.norms));
  const std::vector<float> y = MakeInput(Pattern::kNormal, x.size(), 3);
  EXPECT_TRUE(SameBits(Decode(subject::QsgdDecode, code, bucket, levels, 0.3F, y, backend),
                       Decode(ref::QsgdDecode, code, bucket, levels, 0.3F, y)));
  EXPECT_TRUE(SameBits(Decode(subject::QsgdDecodeAdd, code, bucket, levels, 0.3F, y, backend),
                       Decode(ref::QsgdDecodeAdd, code, bucket, levels, 0.3F, y)));
}

// Against the three passes that it replaces.
void ExpectFeedbackAgrees(In x, std::size_t bucket, int levels, const Backend& backend = kBackend) {
  // A residual of the same kind, so that sums overflow where the values are huge.
  std::vector<float> residual(x.rbegin(), x.rend());
  std::vector<float> expected_residual = residual;
  const auto feedback = [&](const Backend& on, In in, std::size_t size, int s, const RandomKey& key,
                            std::span<std::int8_t> codes, Out norms) {
    subject::QsgdEncodeFeedback(on, in, residual, size, s, key, codes, norms);
  };
  const Code code = Encode(feedback, x, bucket, levels, kKey, backend);
  ref::AddSaturated(kBackend, x, expected_residual);
  const Code expected = Encode(ref::QsgdEncode, expected_residual, bucket, levels);
  expected_residual =
      Decode(ref::QsgdDecodeAdd, expected, bucket, levels, -1.0F, expected_residual);
  EXPECT_TRUE(SameBits(code.codes, expected.codes));
  EXPECT_TRUE(SameBits(code.norms, expected.norms));
  EXPECT_TRUE(SameBits(residual, expected_residual));
}

TEST(QsgdTest, EveryInputAsTheReferenceDoes) {
  for (std::size_t bucket : {1, 100, 128, 1 << 20}) {
    const int levels = bucket == 100 ? 4 : 127;
    ForEveryInput([=](In x) {
      if (OnCuda() && x.size() / bucket > 300) return;
      ExpectRefAgrees(x, bucket, levels);
      ExpectFeedbackAgrees(x, bucket, levels);
    });
  }
}

// Lengths of buckets around what a few threads, a warp and more share on a GPU, of whole groups and
// of others; one bucket, and several with a last one that is shorter. Squares that fp32 holds, that
// overflow it, and that lose bits.
TEST(QsgdTest, BucketsOfAnyLengthAsTheReferenceDoes) {
  for (std::size_t bucket : {2,    8,    64,   65,   72,   130,  192,  256,  264,  512,  1000,
                             1024, 1032, 2048, 4088, 4096, 4104, 8192, 8193, 8200, 20000}) {
    SCOPED_TRACE(bucket);
    const std::size_t offset = bucket % 3;
    for (std::size_t n : {bucket, 2 * bucket + 1, 3 * bucket + bucket / 2 + 4}) {
      for (Pattern pattern : {Pattern::kNormal, Pattern::kExponents, Pattern::kTiny}) {
        const std::vector<float> x = MakeInput(pattern, n + offset);
        ExpectRefAgrees(In(x).subspan(offset), bucket, 100);
        ExpectFeedbackAgrees(In(x).subspan(offset), bucket, 100);
      }
    }
  }
}

TEST(QsgdTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 1;
  for (std::size_t bucket : {64, 1000, 10000}) {
    const std::vector<float> x = MakeInput(Pattern::kNormal, 12000);
    Backend backend;
    backend.only_if = &never;
    const Code none = Encode(subject::QsgdEncode, x, bucket, 9, kKey, backend);
    EXPECT_TRUE(SameBits(none.codes, std::vector<std::int8_t>(x.size(), 99)));
    EXPECT_TRUE(SameBits(none.norms, std::vector<float>(none.norms.size(), -7.0F)));
    EXPECT_TRUE(SameBits(Decode(subject::QsgdDecode, none, bucket, 9, 1.0F, x, backend), x));
    backend.only_if = &always;
    EXPECT_TRUE(SameBits(Encode(subject::QsgdEncode, x, bucket, 9, kKey, backend).codes,
                         Encode(ref::QsgdEncode, x, bucket, 9).codes));
  }
}

TEST(QsgdTest, ThreadsChangeNothing) {
  FourThreads threads;
  const std::vector<float> x = MakeInput(Pattern::kNormal, kManyTasks);
  for (std::size_t bucket : {1000UL, kManyTasks}) {
    ExpectRefAgrees(x, bucket, 127, threads.backend());
    ExpectFeedbackAgrees(x, bucket, 127, threads.backend());
  }
}

TEST(QsgdTest, StreamedOutputsAreTheSame) {
  FourThreads threads;
  const std::vector<float> x = MakeInput(Pattern::kExponents, 2 * Streamed() + 1);
  ExpectRefAgrees(x, 128, 127, threads.backend());
}

// As for stochastic rounding of int8: 4.5 standard errors.
TEST(QsgdTest, IsUnbiased) {
  const std::vector<float> x = {12, 0.1F, -0.1F, 0.5F, -0.75F, 3.3F, -1.9F, 1e-3F, 0.25F};
  const int keys = OnCuda() ? 1000 : 40000;  // a launch a key
  constexpr int kLevels = 13;
  std::vector<double> sum(x.size());
  float norm = 0;
  for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(keys); ++step) {
    const Code code = Encode(subject::QsgdEncode, x, x.size(), kLevels, {99, step});
    norm = code.norms[0];
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += code.codes[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double share = static_cast<double>(x[i]) / static_cast<double>(norm) * kLevels;
    const double fraction = share - std::floor(share);
    EXPECT_NEAR(sum[i] / keys, share, 4.5 * std::sqrt(fraction * (1 - fraction) / keys)) << x[i];
  }
}

TEST(QsgdTest, HostileCodesDecodeWithinReason) {
  const Code code = {{-128, 127, 1, 0, 5, 0}, {2.0F, kInf, kNan}};
  const std::vector<float> y = Decode(subject::QsgdDecode, code, 2, 4, 1.0F, std::vector<float>(6));
  EXPECT_EQ(y[0], -2.0F);
  EXPECT_EQ(y[1], 2.0F);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_FALSE(std::isfinite(y[i])) << i;
}

TEST(QsgdDeathTest, MistakesOfTheCallerStop) {
  const std::vector<float> x(9);
  std::vector<std::int8_t> codes(9), few(8);
  std::vector<float> norms(3), wrong(2), y(9), short_residual(8);
  EXPECT_DEATH(subject::QsgdEncode(kBackend, x, 0, 4, kKey, codes, norms), "check failed");
  EXPECT_DEATH(subject::QsgdEncode(kBackend, x, 3, 0, kKey, codes, norms), "check failed");
  EXPECT_DEATH(subject::QsgdEncode(kBackend, x, 3, 128, kKey, codes, norms), "check failed");
  EXPECT_DEATH(subject::QsgdEncode(kBackend, x, 3, 4, kKey, few, norms), "check failed");
  EXPECT_DEATH(subject::QsgdEncode(kBackend, x, 3, 4, kKey, codes, wrong), "check failed");
  EXPECT_DEATH(subject::QsgdEncodeFeedback(kBackend, x, short_residual, 3, 4, kKey, codes, norms),
               "check failed");
  EXPECT_DEATH(subject::QsgdDecode(kBackend, codes, norms, 3, 128, 1.0F, y), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
