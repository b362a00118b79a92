#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"
#include "kernels/low_rank.h"
#include "kernels/ref_lane_sum.h"

namespace slimgrad::kernels::ref {
namespace {

bool Finite(float value) { return !std::isnan(value) && !std::isinf(value); }

float Saturated(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (std::isnan(value) || std::isinf(value)) return static_cast<float>(value);
  return static_cast<float>(std::fmin(std::fmax(value, -kMax), kMax));
}

void AddSaturating(float& to, float term) {
  const bool finite = Finite(to) && Finite(term);
  to = to + term;
  if (finite && std::isinf(to)) to = to > 0 ? FLT_MAX : -FLT_MAX;
}

// Sum of a[i] * b[i] in ascending order.
float SumOfProducts(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float product = a[i] * b[i];
    sum = sum + product;
  }
  if (Finite(sum)) return sum;
  double wide = 0;
  for (std::size_t i = 0; i < a.size(); ++i) wide = wide + double{a[i]} * double{b[i]};
  return Saturated(wide);
}

std::vector<float> Row(In matrix, std::size_t cols, std::size_t i) {
  return {matrix.begin() + static_cast<std::ptrdiff_t>(i * cols),
          matrix.begin() + static_cast<std::ptrdiff_t>((i + 1) * cols)};
}

std::vector<float> Col(In matrix, std::size_t rows, std::size_t cols, std::size_t j) {
  std::vector<float> column;
  for (std::size_t i = 0; i < rows; ++i) column.push_back(matrix[i * cols + j]);
  return column;
}

double WideDot(const std::vector<float>& a, const std::vector<float>& b) {
  return LaneSum<double>(a.size(), [&](std::size_t i) { return double{a[i]} * double{b[i]}; });
}

double NormalizeVector(std::vector<float>& v) {
  const double length = std::sqrt(WideDot(v, v));
  if (length != 0)
    for (float& element : v) element = static_cast<float>(double{element} / length);
  return length;
}

void ProjectVector(const std::vector<std::vector<float>>& basis, std::vector<float>& v) {
  for (std::size_t first = 0; first < basis.size(); first += 64) {
    const std::size_t last = std::min(first + 64, basis.size());
    std::vector<double> parts;
    for (std::size_t k = first; k < last; ++k) parts.push_back(WideDot(basis[k], v));
    for (std::size_t i = 0; i < v.size(); ++i) {
      double rest = v[i];
      for (std::size_t k = first; k < last; ++k)
        rest = rest - parts[k - first] * double{basis[k][i]};
      v[i] = static_cast<float>(rest);
    }
  }
}

}  // namespace

void MultiplyRight(const Backend&, Scratch&, In m, std::size_t rows, std::size_t cols, In q,
                   std::size_t rank, Out p) {
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t r = 0; r < rank; ++r) {
      const std::vector<float> a = Row(m, cols, i);
      const std::vector<float> b = Col(q, cols, rank, r);
      const float sum = LaneSum<float>(cols, [&](std::size_t j) { return a[j] * b[j]; });
      p[i * rank + r] = Finite(sum) ? sum : Saturated(WideDot(a, b));
    }
  }
}

void MultiplyLeft(const Backend&, Scratch&, In m, std::size_t rows, std::size_t cols, In p,
                  std::size_t rank, Out q) {
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t r = 0; r < rank; ++r)
      q[j * rank + r] = SumOfProducts(Col(m, rows, cols, j), Col(p, rows, rank, r));
}

void AddOuter(const Backend&, Scratch&, In p, In q, std::size_t rows, std::size_t cols,
              std::size_t rank, float weight, Out m) {
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      const float entry = SumOfProducts(Row(p, rank, i), Row(q, rank, j));
      AddSaturating(m[i * cols + j], weight * entry);
    }
  }
}

void MultiplyRightFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                           std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p) {
  for (std::size_t i = 0; i < x.size(); ++i) AddSaturating(residual[i], x[i]);
  MultiplyRight(backend, scratch, residual, rows, cols, q, rank, p);
}

void Outer(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows, std::size_t cols,
           std::size_t rank, Out m) {
  for (float& entry : m) entry = 0;
  AddOuter(backend, scratch, p, q, rows, cols, rank, 1.0F, m);
}

void OuterFeedback(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
                   std::size_t cols, std::size_t rank, Out average, Out residual) {
  Outer(backend, scratch, p, q, rows, cols, rank, average);
  AddOuter(backend, scratch, p, q, rows, cols, rank, -1.0F, residual);
}

void Orthonormalize(const Backend&, Scratch&, std::size_t rows, std::size_t rank,
                    const RandomKey& key, Out p) {
  SLIMGRAD_CHECK(rank <= rows);
  std::vector<std::vector<float>> basis;
  for (std::uint64_t attempt = 0; basis.size() < rank;) {
    const std::size_t column = basis.size();
    std::vector<float> v = Col(p, rows, rank, column);
    const double length = NormalizeVector(v);
    ProjectVector(basis, v);
    if (length == 0 || NormalizeVector(v) < std::ldexp(1.0, -20)) {
      for (std::size_t i = 0; i < rows; ++i)
        p[i * rank + column] = Uniform(key, attempt * rows * rank + i * rank + column) - 0.5F;
      ++attempt;
      continue;
    }
    ProjectVector(basis, v);
    NormalizeVector(v);
    for (std::size_t i = 0; i < rows; ++i) p[i * rank + column] = v[i];
    basis.push_back(v);
    attempt = 0;
  }
}

}  // namespace slimgrad::kernels::ref
