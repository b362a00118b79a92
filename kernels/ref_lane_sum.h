// Private to the reference kernels: the LaneSum of kernels/sums.h, word by word. `member(i)` is
// member i of the block.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

namespace slimgrad::kernels::ref {

template <class T>
T LaneSum(std::size_t n, const std::function<T(std::size_t)>& member) {
  T total = 0;
  for (std::size_t start = 0; start < n; start += 4096) {
    std::array<T, 64> lane;
    for (std::size_t l = 0; l < 64; ++l) {
      lane[l] = 0;
      for (std::size_t i = l; i < 4096 && start + i < n; i += 64)
        lane[l] = lane[l] + member(start + i);
    }
    for (const std::size_t w : {32, 16, 8, 4, 2, 1})
      for (std::size_t l = 0; l < w; ++l) lane[l] = lane[l] + lane[l + w];
    total = total + lane[0];
  }
  return total;
}

}  // namespace slimgrad::kernels::ref
