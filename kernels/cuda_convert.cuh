// Private to the cuda kernels of convert.h and float8.h: fp32 to and from a format of
// cuda_half.cuh's kind.
#pragma once

#include "kernels/convert.h"
#include "kernels/cuda_half.cuh"
#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_saturate.cuh"

namespace slimgrad::kernels::cuda {

template <class Format, bool kPacked>
__global__ void NarrowKernel(Guard guard, const float* from, std::size_t n,
                             typename Format::Bits largest, typename Format::Bits* to,
                             std::uint64_t* overflowed) {
  if (guard.Closed()) return;
  std::uint32_t count = 0;
  ForPacks<kPacked>(n, [&]<int kWidth>(std::size_t i) {
    const auto x = LoadPack<kWidth>(from + i);
    Pack<typename Format::Bits, kWidth> codes;
    for (int k = 0; k < kWidth; ++k) codes.at[k] = Narrow<Format>(x.at[k], largest, count);
    StorePack(codes, to + i);
  });
  AddCounts(count, overflowed);
}

template <class Format, bool kPacked>
__global__ void FeedbackKernel(Guard guard, const float* from, std::size_t n,
                               typename Format::Bits largest, float* residual,
                               typename Format::Bits* to, std::uint64_t* overflowed) {
  if (guard.Closed()) return;
  std::uint32_t count = 0;
  ForPacks<kPacked, kFloats>(n, [&]<int kWidth>(std::size_t i) {
    const auto x = LoadPack<kWidth>(from + i);
    auto p = LoadPack<kWidth>(residual + i);
    Pack<typename Format::Bits, kWidth> codes;
    for (int k = 0; k < kWidth; ++k) {
      p.at[k] = AddSaturating(p.at[k], x.at[k]);
      codes.at[k] = Narrow<Format>(p.at[k], largest, count);
      p.at[k] = p.at[k] - Format::Widen(codes.at[k]);
    }
    StorePack(codes, to + i);
    StorePack(p, residual + i);
  });
  AddCounts(count, overflowed);
}

// What becomes of a value once it is widened.
enum class Then {
  kStore,  // y = value
  kScale,  // y = 0 + weight * value
  kAdd,    // y = y + weight * value
};

template <class Format, Then kThen, bool kPacked>
__global__ void WidenKernel(Guard guard, const typename Format::Bits* from, std::size_t n,
                            float weight, float* y) {
  if (guard.Closed()) return;
  ForPacks<kPacked, kFloats>(n, [&]<int kWidth>(std::size_t i) {
    const auto codes = LoadPack<kWidth>(from + i);
    Pack<float, kWidth> sum = {};
    if constexpr (kThen == Then::kAdd) sum = LoadPack<kWidth>(y + i);
    for (int k = 0; k < kWidth; ++k) {
      const float value = Format::Widen(codes.at[k]);
      sum.at[k] = kThen == Then::kStore ? value : sum.at[k] + weight * value;
    }
    StorePack(sum, y + i);
  });
}

// What becomes of a magnitude that the format cannot hold.
template <class Format>
typename Format::Bits LargestCode(Overflow overflow) {
  return overflow == Overflow::kInfinity ? Format::kInfinity : Format::kInfinity - 1;
}

template <class Format>
void NarrowAll(const Backend& backend, In from, typename Format::Bits* to, Overflow overflow,
               std::uint64_t* overflowed) {
  if (from.empty()) return;
  const bool packed = Aligned(from.data(), to);
  Launch(backend, "narrow", BlocksForPacks(backend, from.size(), packed), kThreads,
         packed ? NarrowKernel<Format, true> : NarrowKernel<Format, false>, from.data(),
         from.size(), LargestCode<Format>(overflow), to, overflowed);
}

template <class Format>
void FeedbackAll(const Backend& backend, In x, Out residual, typename Format::Bits* to,
                 Overflow overflow, std::uint64_t* overflowed) {
  if (x.empty()) return;
  const bool packed = Aligned(x.data(), residual.data(), to);
  Launch(backend, "narrow with feedback", BlocksForPacks(backend, x.size(), packed, kFloats),
         kThreads, packed ? FeedbackKernel<Format, true> : FeedbackKernel<Format, false>, x.data(),
         x.size(), LargestCode<Format>(overflow), residual.data(), to, overflowed);
}

template <class Format, Then kThen>
void WidenAll(const Backend& backend, const typename Format::Bits* from, float weight, Out y) {
  if (y.empty()) return;
  const bool packed = Aligned(from, y.data());
  Launch(backend, "widen", BlocksForPacks(backend, y.size(), packed, kFloats), kThreads,
         packed ? WidenKernel<Format, kThen, true> : WidenKernel<Format, kThen, false>, from,
         y.size(), weight, y.data());
}

}  // namespace slimgrad::kernels::cuda
