// Private to the cuda kernels: several consecutive elements as one access of up to 16 bytes.
//
// Spans begin at any multiple of their element. Where all spans of a call are aligned, a thread
// takes kWidth elements at a time; where one is not, and at the end, one element. Both are
// coalesced, the first needs fewer instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/cuda_launch.cuh"

namespace slimgrad::kernels::cuda {

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T at[kWidth];
};

// Elements that a thread takes at a time: 16 bytes of fp32 twice, so that 16-bit codes fill an
// access too.
inline constexpr int kPackWidth = 8;

// Bytes of an access, and fp32 of one: what a thread takes where it writes fp32, so that a warp's
// stores fill whole sectors.
inline constexpr int kAccessBytes = 16;
inline constexpr int kFloats = kAccessBytes / sizeof(float);

template <class... T>
bool Aligned(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// Copies kBytes in accesses of 16, or of all where that is less; both sides are aligned to them.
template <int kBytes>
__device__ void CopyAccess(const void* from, void* to) {
  using Access = std::conditional_t<
      kBytes % 16 == 0, uint4,
      std::conditional_t<
          kBytes == 8, uint2,
          std::conditional_t<kBytes == 4, std::uint32_t,
                             std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>>>;
  for (int i = 0; i < kBytes / static_cast<int>(sizeof(Access)); ++i)
    static_cast<Access*>(to)[i] = static_cast<const Access*>(from)[i];
}

template <int kWidth, class T>
__device__ Pack<T, kWidth> LoadPack(const T* p) {
  Pack<T, kWidth> pack;
  CopyAccess<sizeof pack.at>(p, pack.at);
  return pack;
}

template <int kWidth, class T>
__device__ void StorePack(const Pack<T, kWidth>& pack, T* p) {
  CopyAccess<sizeof pack.at>(pack.at, p);
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

template <class Word, bool kPacked>
__global__ void CopyKernel(Guard guard, const Word* from, std::size_t n, Word* to) {
  if (guard.Closed()) return;
  ForPacks<kPacked, kAccessBytes / sizeof(Word)>(
      n, [&]<int kWidth>(std::size_t i) { StorePack(LoadPack<kWidth>(from + i), to + i); });
}

template <class Word>
void CopyWords(const Backend& backend, std::span<const Word> from, std::span<Word> to) {
  if (from.empty()) return;
  const bool packed = Aligned(from.data(), to.data());
  Launch(backend, "copy", BlocksForPacks(backend, to.size(), packed, kAccessBytes / sizeof(Word)),
         kThreads, packed ? CopyKernel<Word, true> : CopyKernel<Word, false>, from.data(),
         from.size(), to.data());
}

}  // namespace slimgrad::kernels::cuda
