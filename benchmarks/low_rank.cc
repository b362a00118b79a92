// One rank's part of a PowerSGD step.
#include "kernels/low_rank.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/operation.h"
#include "core/scratch.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

constexpr RandomKey kKey = {0x79072513F362CB49, 2};

struct Shape {
  std::size_t rows, cols;
};

// Nearly square, of at most n elements; rounded down to what a layer might have: 5000 x 4992 for
// 25 million.
Shape ShapeOf(std::size_t n) {
  const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(n)));
  const std::size_t cols = side - side % std::min<std::size_t>(side, 64);
  const std::size_t rows = n / cols;
  return {rows - rows % 8, cols};
}

// What stays between steps, and what a step leaves.
struct Factors {
  Factors(const Shape& shape, std::size_t rank)
      : p(shape.rows * rank), q(shape.cols * rank), warm(shape.cols * rank) {
    Scratch scratch;
    k::Orthonormalize({}, scratch, shape.cols, rank, kKey, warm.span());
  }
  Buffer<float> p, q, warm;
};

// The functions of the kernels, or of ref.
struct Functions {
  decltype(&k::MultiplyRightFeedback) right;
  decltype(&k::Orthonormalize) orthonormalize;
  decltype(&k::MultiplyLeft) left;
  decltype(&k::OuterFeedback) outer;
};
constexpr Functions kKernels = {k::MultiplyRightFeedback, k::Orthonormalize, k::MultiplyLeft,
                                k::OuterFeedback};
constexpr Functions kRef = {k::ref::MultiplyRightFeedback, k::ref::Orthonormalize,
                            k::ref::MultiplyLeft, k::ref::OuterFeedback};

// Vogels et al. 2019, algorithms 1 and 2, of a single rank: 12 bytes an element for P, 4 for Q, 12
// for the average and the residual.
class PowerSgdStep final : public Case {
 public:
  PowerSgdStep(Inputs inputs, std::size_t n, std::size_t rank)
      : shape_(ShapeOf(n)),
        rank_(rank),
        x_(std::move(inputs)),
        factors_(shape_, rank),
        residual_(shape_.rows * shape_.cols),
        average_(shape_.rows * shape_.cols) {}

  void Run(const Backend& backend, std::size_t turn) override {
    Step(kKernels, backend, shape_, (*x_)[turn].first(shape_.rows * shape_.cols), factors_,
         average_[turn], residual_[turn]);
  }

  // Two steps of the upper rows alone, as a matrix of their own: ref needs seconds for all.
  Quality Check(const Backend& backend) override {
    const Shape part = {std::min<std::size_t>(shape_.rows, 128), shape_.cols};
    const std::size_t n = part.rows * part.cols;
    const In x = (*x_)[0].first(n);
    Factors found(part, rank_);
    Factors expected(part, rank_);
    const Buffer<float> average(n), residual(n), expected_average(n), expected_residual(n);
    Quality quality;
    for (int step = 0; step < 2; ++step) {
      Step(kKernels, backend, part, x, found, average.span(), residual.span());
      Step(kRef, {}, part, x, expected, expected_average.span(), expected_residual.span());
      if (step == 0) quality.rel_error = RelativeError(average.span(), x);
      quality.wrong += Differing(average.span(), expected_average.span()) +
                       Differing(residual.span(), expected_residual.span()) +
                       Differing(found.warm.span(), expected.warm.span());
    }
    quality.output_bytes = sizeof(float) * rank_ * (shape_.rows + shape_.cols);
    return quality;
  }

 private:
  void Step(const Functions& f, const Backend& backend, const Shape& shape, In x, Factors& factors,
            Out average, Out residual) {
    const auto [rows, cols] = shape;
    const Out p = factors.p.span();
    const Out q = factors.q.span();
    f.right(backend, scratch_, x, residual, rows, cols, factors.warm.span(), rank_, p);
    f.orthonormalize(backend, scratch_, rows, rank_, kKey, p);
    f.left(backend, scratch_, residual, rows, cols, p, rank_, q);
    f.outer(backend, scratch_, p, q, rows, cols, rank_, average, residual);
    std::ranges::copy(q, factors.warm.data());
    f.orthonormalize(backend, scratch_, cols, rank_, kKey, factors.warm.span());
  }

  Shape shape_;
  std::size_t rank_;
  Inputs x_;
  Factors factors_;
  Rotation<float> residual_;
  Rotation<float> average_;
  Scratch scratch_;
};

}  // namespace

void AddLowRank(Operations& operations) {
  for (const std::size_t rank : {1, 2, 4})
    operations.push_back(Make<PowerSgdStep>("power_sgd_step/rank:" + std::to_string(rank), rank));
}

}  // namespace slimgrad::benchmarks
