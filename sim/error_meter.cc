#include "sim/error_meter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/sums.h"

namespace slimgrad::sim {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kNmseTail = 0.95;
constexpr double kCosineTail = 0.05;

double Quantile(std::span<const double> sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

double ErrorMeter::Sums::Nmse() const {
  if (exact > 0) return error / exact;
  return error == 0 ? 0 : kNaN;
}

double ErrorMeter::Sums::Cosine() const {
  if (exact == 0 || averaged == 0) return exact == averaged ? 1 : 0;
  // Rounding may lead a little beyond 1, where an angle would be NaN.
  return std::clamp(dot / (std::sqrt(exact) * std::sqrt(averaged)), -1.0, 1.0);
}

void ErrorMeter::Series::Add(const Sums& sums) {
  nmse.push_back(sums.Nmse());
  cosine.push_back(sums.Cosine());
}

ErrorMeter::ErrorMeter(Backend backend, std::span<const TensorSpec> tensors)
    : backend_(backend), tensors_(tensors), by_tensor_(tensors.size()) {}

void ErrorMeter::AddStep(std::span<const In> exact, std::span<const In> averaged) {
  Sums whole;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const Sums sums = {kernels::SumSquaredDifferences(backend_, averaged[t], exact[t]),
                       kernels::SumSquares(backend_, exact[t]),
                       kernels::SumSquares(backend_, averaged[t]),
                       kernels::Dot(backend_, averaged[t], exact[t])};
    by_tensor_[t].Add(sums);
    whole.error += sums.error;
    whole.exact += sums.exact;
    whole.averaged += sums.averaged;
    whole.dot += sums.dot;
  }
  whole_.Add(whole);
}

void ErrorMeter::AddSkippedStep() {
  whole_.nmse.push_back(kNaN);
  whole_.cosine.push_back(kNaN);
}

void ErrorMeter::Fill(Row& row) const {
  row.nmse_steps = whole_.nmse;
  const auto spread = [](const Summary& s) { return Spread{s.mean, s.median, s.tail, "", 0}; };
  const Summary nmse = Summarize(whole_.nmse, kNmseTail),
                cosine = Summarize(whole_.cosine, kCosineTail);
  if (nmse.count > 0) row.nmse = spread(nmse);
  if (cosine.count > 0) row.cosine = spread(cosine);
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const Summary tensor_nmse = Summarize(by_tensor_[t].nmse, kNmseTail);
    const Summary tensor_cosine = Summarize(by_tensor_[t].cosine, kCosineTail);
    if (tensor_nmse.count > 0) {
      row.tensor_nmse.push_back({tensors_[t].name, tensor_nmse.mean});
      if (row.nmse && (row.nmse->worst_tensor.empty() || tensor_nmse.mean > row.nmse->worst)) {
        row.nmse->worst_tensor = tensors_[t].name;
        row.nmse->worst = tensor_nmse.mean;
      }
    }
    if (tensor_cosine.count > 0 && row.cosine &&
        (row.cosine->worst_tensor.empty() || tensor_cosine.mean < row.cosine->worst)) {
      row.cosine->worst_tensor = tensors_[t].name;
      row.cosine->worst = tensor_cosine.mean;
    }
  }
}

Summary Summarize(std::span<const double> values, double tail) {
  std::vector<double> sorted;
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted),
               [](double v) { return !std::isnan(v); });
  if (sorted.empty()) return {};
  double sum = 0;
  for (double v : sorted) sum += v;
  std::sort(sorted.begin(), sorted.end());
  return {sorted.size(), sum / static_cast<double>(sorted.size()), Quantile(sorted, 0.5),
          Quantile(sorted, tail)};
}

}  // namespace slimgrad::sim
