// Private to the cuda kernels: the stream of core/random.h. One block of it is the 16-bit numbers
// of 8 elements, so a thread that takes 8 consecutive ones, from a multiple of 8 on, draws once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.h"

namespace slimgrad::kernels::cuda {

inline constexpr std::size_t kPhilox16s = 8;  // elements of a block that draw 16 bits each
inline constexpr std::size_t kPhilox32s = 4;  // ... that draw 32

struct PhiloxBits {
  // Of element i of the stream, where this is its block; free where the lane is a constant.
  __device__ std::uint32_t Random16(std::size_t i) const {
    return (word[i % kPhilox16s / 2] >> (16 * (i % 2))) & 0xFFFFU;
  }
  __device__ float Uniform(std::size_t i) const {
    return static_cast<float>(word[i % kPhilox32s] >> 8) * 0x1.0p-24F;
  }

  std::uint32_t word[4];
};

// As Philox of core/random.h; call it cuda::Philox, since its argument brings that in.
__device__ inline PhiloxBits Philox(const RandomKey& key, std::uint64_t block) {
  auto low = static_cast<std::uint32_t>(key.bits);
  auto high = static_cast<std::uint32_t>(key.bits >> 32);
  auto c0 = static_cast<std::uint32_t>(block);
  auto c1 = static_cast<std::uint32_t>(block >> 32);
  auto c2 = static_cast<std::uint32_t>(key.step);
  auto c3 = static_cast<std::uint32_t>(key.step >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0;
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c2;
    c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ low;
    c1 = static_cast<std::uint32_t>(b);
    c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ high;
    c3 = static_cast<std::uint32_t>(a);
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace slimgrad::kernels::cuda
