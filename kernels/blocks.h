// How elements are cut into blocks that share something (a scale, a level): `block` of them each,
// from the start; the last block may be shorter.
#pragma once

#include <cstddef>

namespace slimgrad::kernels {

// ceil(n / block); block > 0.
constexpr std::size_t BlockCount(std::size_t n, std::size_t block) {
  return n / block + (n % block != 0);
}

}  // namespace slimgrad::kernels
