#include "core/check.h"
#include "kernels/ref_lane_sum.h"
#include "kernels/sums.h"

namespace slimgrad::kernels::ref {

double SumSquares(const Backend&, In x) {
  return LaneSum<double>(x.size(), [&](std::size_t i) {
    const double value = x[i];
    return value * value;
  });
}

double Dot(const Backend&, In x, In y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  return LaneSum<double>(x.size(), [&](std::size_t i) {
    const double a = x[i];
    const double b = y[i];
    return a * b;
  });
}

double SumSquaredDifferences(const Backend&, In x, In y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  return LaneSum<double>(x.size(), [&](std::size_t i) {
    const double a = x[i];
    const double b = y[i];
    const double difference = a - b;
    return difference * difference;
  });
}

}  // namespace slimgrad::kernels::ref
