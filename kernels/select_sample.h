// Where top-k looks first: the places of its sample, fixed by the tensor's length. Results do not
// depend on them, only the time does; tests build inputs that mislead the sample.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace slimgrad::kernels::cpu {

// Up to so many elements there is no sample: all are looked at, within the caches.
inline constexpr std::size_t kDirectElements = std::size_t{1} << 13;

// Consecutive elements, a cache line: what one look at memory brings.
inline constexpr std::size_t kSampleBlock = 16;

// One element of 16, and at most 65536.
constexpr std::size_t SampleBlocks(std::size_t n) {
  return std::min(n / (kSampleBlock * 16), std::size_t{1} << 12);
}

// The first element of a block: somewhere in the block's even share of the n elements, so that
// sorted input is sampled evenly and periodic input is not followed.
constexpr std::size_t SampleBlockBegin(std::size_t n, std::size_t block) {
  const std::size_t share = n / SampleBlocks(n);  // at least 256, at most 2^20
  std::uint64_t hash = (block + 1) * 0x9E3779B97F4A7C15U;
  hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9U;
  const std::size_t places = share / kSampleBlock;
  return block * share + (hash >> 32) % places * kSampleBlock;
}

}  // namespace slimgrad::kernels::cpu

// The same on GPUs: single elements, which cost as much as lines where all are asked for at once.
namespace slimgrad::kernels::cuda {

// Up to so many elements one block does all, without a sample.
inline constexpr std::size_t kDirectElements = std::size_t{1} << 14;

inline constexpr std::size_t kSample = std::size_t{1} << 12;

// The element of number s, somewhere in its even share of the n elements.
constexpr std::size_t SamplePlace(std::size_t n, std::size_t s) {
  const std::size_t begin = s * n / kSample;
  const std::size_t share = (s + 1) * n / kSample - begin;
  std::uint64_t hash = (s + 1) * 0x9E3779B97F4A7C15U;
  hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9U;
  return begin + ((hash >> 32) * share >> 32);
}

}  // namespace slimgrad::kernels::cuda
