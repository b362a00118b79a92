#include "kernels/low_rank.h"

#include "kernels/elementwise.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;

using Matrix = std::vector<float>;

struct Shape {
  std::size_t rows, cols, rank;
};

constexpr Shape kShapes[] = {{0, 0, 0},     {0, 5, 0},    {1, 1, 1},     {3, 5, 0},    {3, 5, 2},
                             {5, 3, 3},     {64, 32, 4},  {7, 129, 7},   {40, 70, 13}, {2, 4097, 2},
                             {3, 8200, 3},  {4100, 3, 1}, {300, 257, 8}, {20, 20, 20}, {9, 128, 1},
                             {13, 1100, 2}, {70, 64, 3},  {33, 63, 5},   {6, 4700, 6}, {25, 90, 9}};

template <class Function>
Matrix Right(Function function, const Matrix& m, const Shape& s, const Matrix& q,
             const Backend& backend = kBackend) {
  Matrix p(s.rows * s.rank, -7.0F);
  function(backend, DirtyScratch(), m, s.rows, s.cols, q, s.rank, Out(p));
  return p;
}

template <class Function>
Matrix Left(Function function, const Matrix& m, const Shape& s, const Matrix& p,
            const Backend& backend = kBackend) {
  Matrix q(s.cols * s.rank, -7.0F);
  function(backend, DirtyScratch(), m, s.rows, s.cols, p, s.rank, Out(q));
  return q;
}

TEST(LowRankTest, LiteralProducts) {
  const Matrix m = {1, 2, 3, 4, 5, 6};   // 2 x 3
  const Matrix q = {1, 0, 0, 1, 2, -1};  // 3 x 2
  const Shape shape = {2, 3, 2};
  EXPECT_EQ(Right(subject::MultiplyRight, m, shape, q), (Matrix{7, -1, 16, -1}));
  const Matrix p = {1, 2, -1, 3};  // 2 x 2
  EXPECT_EQ(Left(subject::MultiplyLeft, m, shape, p), (Matrix{-3, 14, -3, 19, -3, 24}));
  Matrix to = {100, 100, 100, 100, 100, 100};
  subject::AddOuter(kBackend, DirtyScratch(), p, q, 2, 3, 2, 10.0F, to);
  EXPECT_EQ(to, (Matrix{110, 120, 100, 90, 130, 50}));
}

TEST(LowRankTest, SumsThatOverflowAreWidenedAndSaturate) {
  const auto right = [](const Matrix& m, const Matrix& q) {
    return Right(subject::MultiplyRight, m, {1, m.size(), 1}, q)[0];
  };
  const auto left = [](const Matrix& m, const Matrix& p) {
    return Left(subject::MultiplyLeft, m, {m.size(), 1, 1}, p)[0];
  };
  EXPECT_EQ(right({3e38F, 3e38F}, {1, 1}), kMaxFloat);
  EXPECT_EQ(right({-3e38F, -3e38F}, {1, 1}), -kMaxFloat);
  EXPECT_EQ(right({3e38F, 3e38F, -3e38F}, {1, 1, 1}), 3e38F);
  EXPECT_EQ(right({3e38F, 3e38F}, {2, -2}), 0.0F);
  EXPECT_EQ(right({kInf, 1}, {1, 1}), kInf);
  EXPECT_TRUE(std::isnan(right({kInf, kInf}, {1, -1})));
  EXPECT_EQ(left({3e38F, 3e38F}, {1, 1}), kMaxFloat);
  EXPECT_EQ(left({3e38F, 3e38F, -3e38F}, {1, 1, 1}), 3e38F);
  EXPECT_EQ(left({3e38F, 3e38F}, {2, -2}), 0.0F);

  Matrix m(4, 0.0F);
  subject::AddOuter(kBackend, DirtyScratch(), Matrix{3e38F, 3e38F, 1, 1}, Matrix{2, -2, 2, 1}, 2, 2,
                    2, 1.0F, m);
  EXPECT_EQ(m, (Matrix{0, kMaxFloat, 0, 3}));
  subject::AddOuter(kBackend, DirtyScratch(), Matrix{1, 0}, Matrix{0, kMaxFloat}, 2, 2, 1, 1.0F, m);
  EXPECT_EQ(m, (Matrix{0, kMaxFloat, 0, 3}));
}

// Sums over a row have the shape of LaneSum, sums over rows are in order: 2^24 + 1 rounds to 2^24.
TEST(LowRankTest, OrderOfSums) {
  Matrix m(128, 0.0F);
  m[0] = 0x1p24F;
  m[32] = m[96] = 1;
  const Matrix ones(128, 1.0F);
  EXPECT_EQ(Right(subject::MultiplyRight, m, {1, 128, 1}, ones)[0], 0x1p24F + 2);
  EXPECT_EQ(Left(subject::MultiplyLeft, m, {128, 1, 1}, ones)[0], 0x1p24F);
  Matrix to = {0.0F};
  EXPECT_EQ(ToBits(Right(subject::MultiplyRight, {-0.0F}, {1, 1, 1}, {1})[0]), 0U);
  EXPECT_EQ(ToBits(Left(subject::MultiplyLeft, {-0.0F}, {1, 1, 1}, {1})[0]), 0U);
  to[0] = -0.0F;
  subject::AddOuter(kBackend, DirtyScratch(), Matrix{-0.0F}, Matrix{1}, 1, 1, 1, 1.0F, to);
  EXPECT_EQ(ToBits(to[0]), 0U);
}

// What a fused call and the separate ones leave of a residual and the rest of their results.
struct Fed {
  Matrix residual;
  Matrix result;
};

template <class Function>
Fed RightFed(Function function, const Matrix& x, const Shape& s, const Matrix& q,
             const Backend& backend = kBackend) {
  // A residual of the same kind, so that sums overflow where the values are huge.
  Fed fed = {{x.rbegin(), x.rend()}, Matrix(s.rows * s.rank, -7.0F)};
  function(backend, DirtyScratch(), In(x), Out(fed.residual), s.rows, s.cols, In(q), s.rank,
           Out(fed.result));
  return fed;
}

template <class Function>
Fed OuterFed(Function function, const Matrix& m, const Shape& s, const Matrix& p, const Matrix& q,
             const Backend& backend = kBackend) {
  Fed fed = {m, Matrix(m.size(), kNan)};
  function(backend, DirtyScratch(), In(p), In(q), s.rows, s.cols, s.rank, Out(fed.result),
           Out(fed.residual));
  return fed;
}

void ExpectSame(const Fed& a, const Fed& b) {
  EXPECT_TRUE(SameBits(a.residual, b.residual));
  EXPECT_TRUE(SameBits(a.result, b.result));
}

std::string NameOf(const Shape& s) {
  return std::to_string(s.rows) + " x " + std::to_string(s.cols) + ", rank " +
         std::to_string(s.rank);
}

void ExpectRefAgrees(const Shape& s, Pattern pattern, const Backend& backend = kBackend) {
  SCOPED_TRACE(std::string(NameOf(pattern)) + " " + NameOf(s));
  Matrix m = MakeInput(pattern, s.rows * s.cols);
  const Matrix p = MakeInput(Pattern::kNormal, s.rows * s.rank, 2);
  const Matrix q = MakeInput(Pattern::kNormal, s.cols * s.rank, 3);
  EXPECT_TRUE(SameBits(Right(subject::MultiplyRight, m, s, q, backend),
                       Right(ref::MultiplyRight, m, s, q)));
  EXPECT_TRUE(
      SameBits(Left(subject::MultiplyLeft, m, s, p, backend), Left(ref::MultiplyLeft, m, s, p)));
  ExpectSame(RightFed(subject::MultiplyRightFeedback, m, s, q, backend),
             RightFed(ref::MultiplyRightFeedback, m, s, q));
  // Factors of the pattern too.
  const Matrix factor = MakeInput(pattern, s.rows * s.rank, 4);
  ExpectSame(OuterFed(subject::OuterFeedback, m, s, factor, q, backend),
             OuterFed(ref::OuterFeedback, m, s, factor, q));
  Matrix expected = m;
  Matrix product(m.size(), kNan);
  subject::Outer(backend, DirtyScratch(), factor, q, s.rows, s.cols, s.rank, product);
  EXPECT_TRUE(SameBits(product, OuterFed(ref::OuterFeedback, m, s, factor, q).result));
  subject::AddOuter(backend, DirtyScratch(), factor, q, s.rows, s.cols, s.rank, 0.3F, m);
  ref::AddOuter(kBackend, DirtyScratch(), factor, q, s.rows, s.cols, s.rank, 0.3F, expected);
  EXPECT_TRUE(SameBits(m, expected));
}

TEST(LowRankTest, EveryShapeAndPatternAsTheReferenceDoes) {
  for (Shape shape : kShapes) {
    if (OnCuda()) shape.rows = std::min<std::size_t>(shape.rows, 70);
    for (Pattern pattern : kPatterns) ExpectRefAgrees(shape, pattern);
  }
}

// All ranks that inner loops know and what is made up of them; widths around the cuts between
// groups, strips and runs.
TEST(LowRankTest, EveryRankAndWidthAsTheReferenceDoes) {
  for (std::size_t rank = 0; rank <= 20; ++rank)
    ExpectRefAgrees({rank + 2, 150, rank}, Pattern::kExponents);
  ExpectRefAgrees({70, 66, 64}, Pattern::kNormal);
  for (std::size_t cols : {15, 31, 65, 127, 449, 511, 1025, 4096, 4160, 8191, 8257}) {
    ExpectRefAgrees({5, cols, 2}, Pattern::kExponents);
    ExpectRefAgrees({4, cols, 1}, Pattern::kHuge);
  }
}

// Of wide matrices a GPU takes more columns at a time; more runs than one and more columns of a
// factor than are worked on at once; columns that are and are not whole accesses.
TEST(LowRankTest, WideMatricesAsTheReferenceDoes) {
  for (std::size_t cols : {5000, 10003}) {
    for (std::size_t rank : {1, 2, 3, 5})
      ExpectRefAgrees({rank + 2, cols, rank}, Pattern::kExponents);
    ExpectRefAgrees({17, cols, 17}, Pattern::kNormal);
  }
}

TEST(LowRankTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 3;
  const Shape s = {9, 4200, 4};
  const Matrix m = MakeInput(Pattern::kNormal, s.rows * s.cols);
  const Matrix p = MakeInput(Pattern::kNormal, s.rows * s.rank, 2);
  const Matrix q = MakeInput(Pattern::kNormal, s.cols * s.rank, 3);
  Backend backend;
  backend.only_if = &never;
  ExpectSame(RightFed(subject::MultiplyRightFeedback, m, s, q, backend),
             {{m.rbegin(), m.rend()}, Matrix(p.size(), -7.0F)});
  EXPECT_TRUE(SameBits(Left(subject::MultiplyLeft, m, s, p, backend), Matrix(q.size(), -7.0F)));
  Matrix to = m;
  subject::AddOuter(backend, DirtyScratch(), p, q, s.rows, s.cols, s.rank, 0.3F, to);
  EXPECT_TRUE(SameBits(to, m));
  backend.only_if = &always;
  ExpectSame(RightFed(subject::MultiplyRightFeedback, m, s, q, backend),
             RightFed(ref::MultiplyRightFeedback, m, s, q));
}

TEST(LowRankTest, ThreadsChangeNothing) {
  FourThreads threads;
  ExpectRefAgrees({400, 600, 3}, Pattern::kNormal, threads.backend());
  ExpectRefAgrees({3, 9000, 2}, Pattern::kHuge, threads.backend());
  ExpectRefAgrees({20, 9000, 2}, Pattern::kExponents, threads.backend());
  ExpectRefAgrees({3000, 40, 4}, Pattern::kNormal, threads.backend());
}

// Rows of few and of many columns, whose lines rows' ends cut or do not.
TEST(LowRankTest, StreamedOutputsAreTheSame) {
  FourThreads threads;
  for (Shape s : {Shape{500, 2101, 2}, Shape{16400, 64, 1}, Shape{16400, 65, 1},
                  Shape{500, 2112, 4}, Shape{500, 2112, 3}}) {
    if (OnCuda()) s.rows /= 10;
    SCOPED_TRACE(NameOf(s));
    const Matrix p = MakeInput(Pattern::kNormal, s.rows * s.rank, 2);
    const Matrix q = MakeInput(Pattern::kExponents, s.cols * s.rank, 3);
    const Matrix m = MakeInput(Pattern::kEqual, s.rows * s.cols);
    ExpectSame(OuterFed(subject::OuterFeedback, m, s, p, q, threads.backend()),
               OuterFed(ref::OuterFeedback, m, s, p, q));
  }
}

// A copy that begins `offset` elements into memory of its own.
struct Moved {
  Moved(const Matrix& from, std::size_t offset) : memory(offset), offset(offset) {
    memory.insert(memory.end(), from.begin(), from.end());
  }
  Out span() { return Out(memory).subspan(offset); }
  Matrix values() { return {span().begin(), span().end()}; }

  Matrix memory;
  std::size_t offset;
};

TEST(LowRankTest, StartsDoNotMatter) {
  const Shape s = {OnCuda() ? 60U : 600U, 1801, 3};
  const Matrix m = MakeInput(Pattern::kNormal, s.rows * s.cols);
  const Matrix p = MakeInput(Pattern::kNormal, s.rows * s.rank, 2);
  const Matrix q = MakeInput(Pattern::kNormal, s.cols * s.rank, 3);
  const Fed right = RightFed(ref::MultiplyRightFeedback, m, s, q);
  const Matrix left = Left(ref::MultiplyLeft, m, s, p);
  const Fed outer = OuterFed(ref::OuterFeedback, m, s, p, q);
  for (std::size_t offset : {1, 2, 3, 15}) {
    SCOPED_TRACE(offset);
    Moved x(m, offset), residual({m.rbegin(), m.rend()}, offset), a(p, offset), b(q, offset);
    subject::MultiplyRightFeedback(kBackend, DirtyScratch(), x.span(), residual.span(), s.rows,
                                   s.cols, b.span(), s.rank, a.span());
    ExpectSame({residual.values(), a.values()}, right);
    a = Moved(p, offset);
    subject::OuterFeedback(kBackend, DirtyScratch(), a.span(), b.span(), s.rows, s.cols, s.rank,
                           residual.span(), x.span());
    ExpectSame({x.values(), residual.values()}, outer);
    x = Moved(m, offset);
    subject::MultiplyLeft(kBackend, DirtyScratch(), x.span(), s.rows, s.cols, a.span(), s.rank,
                          b.span());
    EXPECT_TRUE(SameBits(b.values(), left));
  }
}

// One pass is the calls that it stands for.
TEST(LowRankTest, FusedCallsAreTheSeparateOnes) {
  const Shape s = {37, 700, 4};
  for (Pattern pattern : {Pattern::kNormal, Pattern::kHuge, Pattern::kMixedZeros}) {
    const Matrix x = MakeInput(pattern, s.rows * s.cols);
    const Matrix p = MakeInput(pattern, s.rows * s.rank, 2);
    const Matrix q = MakeInput(pattern, s.cols * s.rank, 3);
    Fed expected = {{x.rbegin(), x.rend()}, {}};
    subject::AddSaturated(kBackend, x, expected.residual);
    expected.result = Right(subject::MultiplyRight, expected.residual, s, q);
    ExpectSame(RightFed(subject::MultiplyRightFeedback, x, s, q), expected);

    expected = {x, Matrix(x.size(), 0.0F)};
    subject::AddOuter(kBackend, DirtyScratch(), p, q, s.rows, s.cols, s.rank, 1.0F,
                      expected.result);
    subject::AddOuter(kBackend, DirtyScratch(), p, q, s.rows, s.cols, s.rank, -1.0F,
                      expected.residual);
    ExpectSame(OuterFed(subject::OuterFeedback, x, s, p, q), expected);
    Matrix product(x.size(), kNan);
    subject::Outer(kBackend, DirtyScratch(), p, q, s.rows, s.cols, s.rank, product);
    EXPECT_TRUE(SameBits(product, expected.result));
  }
}

TEST(LowRankTest, LiteralFeedback) {
  const Fed right = RightFed(subject::MultiplyRightFeedback, {1, 2, 3, kMaxFloat, 5, kMaxFloat},
                             {2, 3, 1}, {1, 0, -1});
  EXPECT_EQ(right.residual, (Matrix{kMaxFloat, 7, kMaxFloat, kMaxFloat, 7, kMaxFloat}));
  EXPECT_EQ(right.result, (Matrix{0, 0}));
  const Fed outer =
      OuterFed(subject::OuterFeedback, {1, 1, -kMaxFloat, kInf}, {2, 2, 1}, {1, kMaxFloat}, {2, 3});
  EXPECT_EQ(outer.result, (Matrix{2, 3, kMaxFloat, kMaxFloat}));
  EXPECT_EQ(outer.residual, (Matrix{-1, -2, -kMaxFloat, kInf}));
  // Of rank 0 nothing goes anywhere, but the residual still grows.
  EXPECT_EQ(RightFed(subject::MultiplyRightFeedback, {1, 2, 3}, {1, 3, 0}, {}).residual,
            (Matrix{4, 4, 4}));
  EXPECT_EQ(OuterFed(subject::OuterFeedback, {1, -0.0F}, {1, 2, 0}, {}, {}).result, (Matrix{0, 0}));
}

TEST(LowRankDeathTest, MistakesOfTheCallerStop) {
  Matrix six(6), two(2), three(3), four(4);
  EXPECT_DEATH(subject::MultiplyRight(kBackend, DirtyScratch(), six, 2, 3, three, 1, three),
               "check failed");
  EXPECT_DEATH(subject::MultiplyRight(kBackend, DirtyScratch(), four, 2, 3, three, 1, two),
               "check failed");
  EXPECT_DEATH(subject::MultiplyLeft(kBackend, DirtyScratch(), six, 2, 3, six, 3, six),
               "check failed");
  EXPECT_DEATH(subject::AddOuter(kBackend, DirtyScratch(), two, two, 2, 3, 1, 1.0F, six),
               "check failed");
  EXPECT_DEATH(
      subject::MultiplyRightFeedback(kBackend, DirtyScratch(), six, four, 2, 3, three, 1, two),
      "check failed");
  EXPECT_DEATH(subject::Outer(kBackend, DirtyScratch(), two, three, 2, 3, 1, four), "check failed");
  EXPECT_DEATH(subject::OuterFeedback(kBackend, DirtyScratch(), two, three, 2, 3, 1, six, four),
               "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
