// How far averaged gradients are from the exact average, step by step and tensor by tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "kernels/backend.h"
#include "sim/report/report.h"

namespace slimgrad::sim {

// NMSE = |a' - a|^2 / |a|^2 and cosine = a'.a / (|a'| |a|), for the exact average a and what a
// compressor made of it, a'. All tensors of a step count as one vector. Where a is zero, NMSE is 0
// if a' is zero too and else undefined (NaN: left out of every summary), and the cosine 1 or 0.
// Sums in fp64 of fixed shape: the same bits on any machine.
class ErrorMeter {
 public:
  ErrorMeter(Backend backend, std::span<const TensorSpec> tensors);

  void AddStep(std::span<const In> exact, std::span<const In> averaged);
  void AddSkippedStep();

  // Fills nmse, cosine, nmse_steps and tensor_nmse; leaves the summaries unset where no step has a
  // number.
  void Fill(Row& row) const;

 private:
  struct Sums {
    double error = 0, exact = 0, averaged = 0, dot = 0;
    double Nmse() const;
    double Cosine() const;
  };
  // Over the steps, for one tensor or for all together.
  struct Series {
    std::vector<double> nmse, cosine;
    void Add(const Sums& sums);
  };

  Backend backend_;
  std::span<const TensorSpec> tensors_;
  Series whole_;
  std::vector<Series> by_tensor_;
};

// Mean, median and the value below (or, with tail 0.05, above) which few lie, of the numbers that
// are not NaN.
struct Summary {
  std::size_t count = 0;
  double mean = 0, median = 0, tail = 0;
};
// The q-quantile of m sorted values is number ceil(q m), counted from 1 (nearest rank).
Summary Summarize(std::span<const double> values, double tail);

}  // namespace slimgrad::sim
