// Private to the cpu kernels of the sign family: what encoding and decoding share.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/backend.h"
#include "kernels/blocks.h"
#include "kernels/cpu_ranges.h"
#include "kernels/sign.h"

namespace slimgrad::kernels::cpu {

// What the two bits stand for.
struct Levels {
  float up;
  float down;
};

// Blocks [first, last) of n elements.
struct Blocks {
  std::size_t n;
  std::size_t size;
  std::size_t first;
  std::size_t last;
};

// Calls run(blocks) for tasks of whole blocks, each of which begins at a byte of bits.
template <class RunBlocks>
void ForBlocks(const Backend& backend, std::size_t n, std::size_t block, const RunBlocks& run) {
  std::size_t step = std::max<std::size_t>(1, kTaskElements / block);
  if (block % 8 != 0) step = (step + 7) / 8 * 8;
  ForRanges(backend, BlockCount(n, block), step, [&](std::size_t first, std::size_t last) {
    run(Blocks{n, block, first, last});
  });
}

}  // namespace slimgrad::kernels::cpu
