// Many random numbers at once: the stream of core/random.h.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// to[j] = Random16(key, first + j); first + to.size() at most 2^64. What stochastic rounding draws.
void FillRandom16(const Backend& backend, const RandomKey& key, std::uint64_t first,
                  std::span<std::uint16_t> to);

SLIMGRAD_KERNEL(FillRandom16);

}  // namespace slimgrad::kernels
