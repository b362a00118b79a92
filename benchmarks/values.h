// Values that benchmarks draw, and how they measure what came of them.
#pragma once

#include <cmath>
#include <numbers>

#include "core/tensor.h"

namespace slimgrad::benchmarks {

// A standard normal value, of two independent uniform ones (Box and Muller). u is in (0, 1].
inline double Normal(double u, double v) {
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// |decoded - x| / |x|, 2-norms in fp64; 0 for equal ones.
inline double RelativeError(In decoded, In x) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += std::pow(double{decoded[i]} - double{x[i]}, 2);
    norm += std::pow(double{x[i]}, 2);
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

}  // namespace slimgrad::benchmarks
