#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/check.h"
#include "kernels/select.h"

namespace slimgrad::kernels::ref {

// k times: the first of the largest that are left.
void TopK(const Backend&, In x, std::span<std::uint32_t> indices, Out values) {
  SLIMGRAD_CHECK(indices.size() <= x.size() && values.size() == indices.size());
  std::vector<bool> taken(x.size(), false);
  for (std::size_t j = 0; j < indices.size(); ++j) {
    std::size_t best = x.size();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (taken[i]) continue;
      if (best == x.size() || std::fabs(x[i]) > std::fabs(x[best])) best = i;
    }
    taken[best] = true;
  }
  for (std::size_t i = 0, j = 0; i < x.size(); ++i) {
    if (!taken[i]) continue;
    indices[j] = static_cast<std::uint32_t>(i);
    values[j] = x[i];
    ++j;
  }
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

}  // namespace slimgrad::kernels::ref
