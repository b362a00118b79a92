// Counter-based randomness: a value depends on its key and counter alone, so every thread count,
// rank and device draws the same bits. Philox4x32-10 (Salmon et al., SC 2011) as Random123
// implements it; the layout below is normative, docs/numerics.md repeats it.
//
//   key: XXH3-64 of the bytes: seed, rank (or kShared), length of purpose, each as u64 LE; then the
//   purpose and the tensor's name.
//
//   counter: block low 32, block high 32, step low 32, step high 32.
//
//   the 16 bytes of a block: words 0..3, little-endian; that is 8 lanes of 16 bits or 4 of 32.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace slimgrad {

struct RandomKey {
  std::uint64_t bits = 0;
  std::uint64_t step = 0;
};

// Stands for "the same on every rank" in place of a rank.
inline constexpr std::uint64_t kShared = ~std::uint64_t{0};

// `purpose` keeps two uses of randomness in one method apart, e.g. "int8.rounding".
RandomKey MakeRandomKey(std::uint64_t seed, std::uint64_t step, std::string_view purpose,
                        std::string_view tensor, std::uint64_t rank_or_shared);

// Block `block` of the stream: 128 random bits.
std::array<std::uint32_t, 4> Philox(const RandomKey& key, std::uint64_t block);

// 16 random bits for element i: lane i % 8 of block i / 8.
std::uint16_t Random16(const RandomKey& key, std::uint64_t i);

// Uniform in [0, 1) on a grid of 2^-24 for element i: word i % 4 of block i / 4, its upper 24 bits.
float Uniform(const RandomKey& key, std::uint64_t i);

}  // namespace slimgrad
