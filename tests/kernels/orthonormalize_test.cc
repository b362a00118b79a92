#include "kernels/low_rank.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;
const RandomKey kKey = {42, 3};

using Matrix = std::vector<float>;

// Largest difference of transpose(p) p from the identity.
double GramError(const Matrix& p, std::size_t rows, std::size_t rank) {
  double worst = 0;
  for (std::size_t a = 0; a < rank; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = a == b ? -1 : 0;
      for (std::size_t i = 0; i < rows; ++i)
        dot += static_cast<double>(p[i * rank + a]) * static_cast<double>(p[i * rank + b]);
      worst = std::isnan(dot) ? kInf : std::max(worst, std::fabs(dot));
    }
  }
  return worst;
}

Matrix Orthonormal(Matrix p, std::size_t rows, std::size_t rank, const RandomKey& key = kKey) {
  Matrix expected = p;
  subject::Orthonormalize(kBackend, DirtyScratch(), rows, rank, key, p);
  ref::Orthonormalize(kBackend, DirtyScratch(), rows, rank, key, expected);
  EXPECT_TRUE(SameBits(p, expected));
  EXPECT_LT(GramError(p, rows, rank), 1e-6);
  return p;
}

TEST(OrthonormalizeTest, Literals) {
  EXPECT_EQ(Orthonormal({3, 4}, 2, 1), (Matrix{0.6F, 0.8F}));
  EXPECT_EQ(Orthonormal({2, 1, 0, 5}, 2, 2), (Matrix{1, 0, 0, 1}));
  EXPECT_EQ(Orthonormal({-2}, 1, 1), Matrix{-1});
  EXPECT_EQ(Orthonormal({}, 0, 0), Matrix{});
}

TEST(OrthonormalizeTest, EveryPatternGivesABasis) {
  for (Pattern pattern : kPatterns) {
    for (std::size_t rows : {1, 2, 3, 8, 9, 64, 65, 300, 4097}) {
      for (std::size_t rank : {1, 2, 3, 4, 7, 8}) {
        if (rank > rows || (OnCuda() && rows * rank > 20000)) continue;
        SCOPED_TRACE(std::string(NameOf(pattern)) + " " + std::to_string(rows) + " x " +
                     std::to_string(rank));
        Orthonormal(MakeInput(pattern, rows * rank), rows, rank);
      }
    }
  }
}

TEST(OrthonormalizeTest, ScaleDoesNotMatter) {
  const Matrix p = MakeInput(Pattern::kNormal, 50 * 8);
  const Matrix expected = Orthonormal(p, 50, 8);
  for (float scale : {0x1p-100F, 0x1p100F}) {
    Matrix scaled = p;
    for (float& element : scaled) element *= scale;
    EXPECT_TRUE(SameBits(Orthonormal(scaled, 50, 8), expected)) << scale;
  }
  for (float scale : {1e-30F, 1e30F}) {
    Matrix scaled = p;
    for (std::size_t i = 0; i < p.size(); i += 2) scaled[i] *= scale;  // every second column
    Orthonormal(scaled, 50, 8);
  }
}

// Columns 1, 3 and 5 repeat, combine or nearly repeat others; the first of each stays where it was.
TEST(OrthonormalizeTest, DependentColumnsAreReplaced) {
  constexpr std::size_t kRows = 100, kRank = 6;
  Matrix p = MakeInput(Pattern::kNormal, kRows * kRank);
  for (std::size_t i = 0; i < kRows; ++i) {
    float* row = p.data() + i * kRank;
    row[1] = row[0] * -3.0F;
    row[3] = row[0] + 2 * row[2];
    row[5] = row[4] * (1.0F + (i % 2 == 0 ? 1e-7F : 0.0F));
  }
  const Matrix basis = Orthonormal(p, kRows, kRank);
  double length = 0;
  for (std::size_t i = 0; i < kRows; ++i)
    length += static_cast<double>(p[i * kRank]) * p[i * kRank];
  for (std::size_t i = 0; i < kRows; ++i)
    EXPECT_NEAR(basis[i * kRank], p[i * kRank] / std::sqrt(length), 1e-6);
}

// A column that is nearly dependent, but not quite, keeps its own direction.
TEST(OrthonormalizeTest, NearlyDependentColumnsKeepTheirDirection) {
  const Matrix p = {1, 1, 0, 0x1p-10F, 0, 0};  // (1, 0, 0) and (1, 2^-10, 0)
  EXPECT_EQ(Orthonormal(p, 3, 2), (Matrix{1, 0, 0, 1, 0, 0}));
}

TEST(OrthonormalizeTest, ReplacementsComeFromTheKey) {
  const Matrix zeros(64 * 4, 0.0F);
  const Matrix a = Orthonormal(zeros, 64, 4);
  EXPECT_TRUE(SameBits(a, Orthonormal(zeros, 64, 4)));
  EXPECT_FALSE(SameBits(a, Orthonormal(zeros, 64, 4, {42, 4})));
  // The first direction is the normalised stream itself.
  const float ratio = a[4] / a[0];
  EXPECT_NEAR(ratio, (Uniform(kKey, 4) - 0.5F) / (Uniform(kKey, 0) - 0.5F),
              1e-4F * std::fabs(ratio));
}

// With this key the first random direction of a 1 x 1 matrix is 0.5 - 0.5: no direction at all.
TEST(OrthonormalizeTest, ReplacementsThatFailAreReplaced) {
  const RandomKey key = {42, 3854678};
  ASSERT_EQ(Uniform(key, 0), 0.5F);
  ASSERT_LT(Uniform(key, 1), 0.5F);
  EXPECT_EQ(Orthonormal({0}, 1, 1, key), Matrix{-1});
}

// More rows than a GPU keeps a column of at hand; several runs.
TEST(OrthonormalizeTest, ManyRows) {
  Orthonormal(MakeInput(Pattern::kNormal, 8192 * 2), 8192, 2);
  Orthonormal(MakeInput(Pattern::kExponents, 9001 * 3), 9001, 3);
  Orthonormal(Matrix(8193 * 2, 1.0F), 8193, 2);
}

TEST(OrthonormalizeTest, MoreColumnsThanOneGroup) {
  Orthonormal(MakeInput(Pattern::kNormal, 150 * 140), 150, 140);
  Orthonormal(Matrix(70 * 70, 1.0F), 70, 70);
}

TEST(OrthonormalizeTest, NansStay) {
  Matrix p = MakeInput(Pattern::kNormal, 20);
  p[0] = kNan;
  subject::Orthonormalize(kBackend, DirtyScratch(), 10, 2, kKey, p);
  EXPECT_TRUE(std::isnan(p[0]));
  p = MakeInput(Pattern::kNormal, 20);
  p[0] = kInf;
  subject::Orthonormalize(kBackend, DirtyScratch(), 10, 2, kKey, p);
  EXPECT_TRUE(std::isnan(p[0]));
}

TEST(OrthonormalizeTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 3;
  const Matrix p = MakeInput(Pattern::kNormal, 36);
  Backend backend;
  backend.only_if = &never;
  Matrix basis = p;
  subject::Orthonormalize(backend, DirtyScratch(), 9, 4, kKey, basis);
  EXPECT_TRUE(SameBits(basis, p));
  backend.only_if = &always;
  subject::Orthonormalize(backend, DirtyScratch(), 9, 4, kKey, basis);
  EXPECT_TRUE(SameBits(basis, Orthonormal(p, 9, 4)));
}

TEST(OrthonormalizeDeathTest, MistakesOfTheCallerStop) {
  Matrix six(6);
  EXPECT_DEATH(subject::Orthonormalize(kBackend, DirtyScratch(), 2, 3, kKey, six), "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
