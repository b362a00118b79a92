#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/check.h"
#include "kernels/elementwise.h"
#include "kernels/select.h"

namespace slimgrad::kernels::ref {
namespace {

std::uint32_t Rank(float value) { return std::bit_cast<std::uint32_t>(value) << 1; }

}  // namespace

// Sorts all of them; a stable sort leaves the lower index in front.
void TopK(const Backend&, Scratch&, In x, std::span<std::uint32_t> indices, Out values) {
  const std::size_t k = indices.size();
  SLIMGRAD_CHECK(k <= x.size() && values.size() == k);
  std::vector<std::uint32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return Rank(x[a]) > Rank(x[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  for (std::size_t j = 0; j < k; ++j) {
    indices[j] = order[j];
    values[j] = x[order[j]];
  }
}

void TopKFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                  std::span<std::uint32_t> indices, Out values) {
  AddSaturated(backend, x, residual);
  TopK(backend, scratch, residual, indices, values);
  for (std::uint32_t index : indices) residual[index] = 0.0F;
}

void ThresholdSelect(const Backend&, Scratch&, In x, float threshold,
                     std::span<std::uint32_t> indices, Out values, std::uint64_t* found) {
  SLIMGRAD_CHECK(threshold >= 0 && values.size() == indices.size());
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (Rank(x[i]) >= Rank(threshold)) all.push_back(static_cast<std::uint32_t>(i));
  for (std::size_t j = 0; j < all.size() && j < indices.size(); ++j) {
    indices[j] = all[j];
    values[j] = x[all[j]];
  }
  *found = all.size();
}

Status ScatterAdd(const Backend&, std::span<const std::uint32_t> indices, In values, float weight,
                  Out y) {
  if (indices.size() != values.size()) return Corrupt("as many values as indices expected");
  const std::set<std::uint32_t> sorted(indices.begin(), indices.end());
  if (std::vector<std::uint32_t>(sorted.begin(), sorted.end()) !=
      std::vector<std::uint32_t>(indices.begin(), indices.end()))
    return Corrupt("strictly ascending indices expected");
  if (!sorted.empty() && *sorted.rbegin() >= y.size())
    return Corrupt("indices below " + std::to_string(y.size()) + " expected");
  std::size_t j = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (j == indices.size() || indices[j] != i) continue;
    const float product = weight * values[j++];
    y[i] = y[i] + product;
  }
  return {};
}

Status Scatter(const Backend& backend, std::span<const std::uint32_t> indices, In values,
               float weight, Out y) {
  std::vector<float> zeros(y.size(), 0.0F);
  Status status = ScatterAdd(backend, indices, values, weight, zeros);
  if (status.ok()) std::copy(zeros.begin(), zeros.end(), y.begin());
  return status;
}

}  // namespace slimgrad::kernels::ref
