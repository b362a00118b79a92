// Private to the cuda kernels: several consecutive elements as one access of up to 16 bytes.
//
// Spans begin at any multiple of their element. Where all spans of a call are aligned, a thread
// takes kWidth elements at a time; where one is not, and at the end, one element. Both are
// coalesced, the first needs fewer instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_launch.cuh"

namespace slimgrad::kernels::cuda {

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T at[kWidth];
};

// Elements that a thread takes at a time: 16 bytes of fp32 twice, so that 16-bit codes fill an
// access too.
inline constexpr int kPackWidth = 8;

template <class... T>
bool Aligned(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// In accesses of 16 bytes, or of all where that is less; p is aligned to them.
template <int kWidth, class T>
__device__ Pack<T, kWidth> LoadPack(const T* p) {
  Pack<T, kWidth> pack;
  constexpr int kBytes = sizeof(T) * kWidth;
  if constexpr (kBytes % 16 == 0) {
    for (int i = 0; i < kBytes / 16; ++i)
      reinterpret_cast<uint4*>(pack.at)[i] = reinterpret_cast<const uint4*>(p)[i];
  } else if constexpr (kBytes == 8) {
    *reinterpret_cast<uint2*>(pack.at) = *reinterpret_cast<const uint2*>(p);
  } else if constexpr (kBytes == 4) {
    *reinterpret_cast<std::uint32_t*>(pack.at) = *reinterpret_cast<const std::uint32_t*>(p);
  } else if constexpr (kBytes == 2) {
    *reinterpret_cast<std::uint16_t*>(pack.at) = *reinterpret_cast<const std::uint16_t*>(p);
  } else {
    for (int i = 0; i < kWidth; ++i) pack.at[i] = p[i];
  }
  return pack;
}

template <int kWidth, class T>
__device__ void StorePack(const Pack<T, kWidth>& pack, T* p) {
  constexpr int kBytes = sizeof(T) * kWidth;
  if constexpr (kBytes % 16 == 0) {
    for (int i = 0; i < kBytes / 16; ++i)
      reinterpret_cast<uint4*>(p)[i] = reinterpret_cast<const uint4*>(pack.at)[i];
  } else if constexpr (kBytes == 8) {
    *reinterpret_cast<uint2*>(p) = *reinterpret_cast<const uint2*>(pack.at);
  } else if constexpr (kBytes == 4) {
    *reinterpret_cast<std::uint32_t*>(p) = *reinterpret_cast<const std::uint32_t*>(pack.at);
  } else {
    for (int i = 0; i < kWidth; ++i) p[i] = pack.at[i];
  }
}

// Calls body.template operator()<kWidth>(i) for disjoint runs [i, i + kWidth) that make up [0, n).
// kPacked: kWidth is kMost but at the end; else always 1. Whole grids call it.
template <bool kPacked, int kMost = kPackWidth, class Body>
__device__ void ForPacks(std::size_t n, Body body) {
  constexpr std::size_t kWidth = kPacked ? kMost : 1;
  const std::size_t packs = n / kWidth;
  for (std::size_t p = FirstItem(); p < packs; p += ItemStride())
    body.template operator()<kWidth>(p * kWidth);
  const std::size_t rest = packs * kWidth + FirstItem();
  if (kPacked && rest < n) body.template operator()<1>(rest);
}

// Blocks for such a loop.
inline unsigned BlocksForPacks(const Backend& backend, std::size_t n, bool packed,
                               int most = kPackWidth) {
  return BlocksFor(backend, n, packed ? std::size_t{kThreads} * most : kThreads);
}

}  // namespace slimgrad::kernels::cuda
