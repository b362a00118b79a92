// Bytes an element, of what must be moved and of what is: Narrow, Widen and Decode 6, DecodeAdd 10,
// NarrowFeedback 14, Copy 8. One pass each.
#include "kernels/convert.h"
#include "kernels/cuda_half.cuh"
#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_saturate.cuh"

namespace slimgrad::kernels::cuda {
namespace {

template <class Format, bool kPacked>
__global__ void NarrowKernel(Guard guard, const float* from, std::size_t n, std::uint16_t largest,
                             std::uint16_t* to, std::uint64_t* overflowed) {
  if (guard.Closed()) return;
  std::uint32_t count = 0;
  ForPacks<kPacked>(n, [&]<int kWidth>(std::size_t i) {
    const auto x = LoadPack<kWidth>(from + i);
    Pack<std::uint16_t, kWidth> codes;
    for (int k = 0; k < kWidth; ++k) codes.at[k] = Narrow<Format>(x.at[k], largest, count);
    StorePack(codes, to + i);
  });
  AddCounts(count, overflowed);
}

template <class Format, bool kPacked>
__global__ void FeedbackKernel(Guard guard, const float* from, std::size_t n, std::uint16_t largest,
                               float* residual, std::uint16_t* to, std::uint64_t* overflowed) {
  if (guard.Closed()) return;
  std::uint32_t count = 0;
  ForPacks<kPacked, kFloats>(n, [&]<int kWidth>(std::size_t i) {
    const auto x = LoadPack<kWidth>(from + i);
    auto p = LoadPack<kWidth>(residual + i);
    Pack<std::uint16_t, kWidth> codes;
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
__global__ void WidenKernel(Guard guard, const std::uint16_t* from, std::size_t n, float weight,
                            float* y) {
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

template <class Format>
std::uint16_t LargestCode(Overflow overflow) {
  return overflow == Overflow::kInfinity ? Format::kInfinity : Format::kInfinity - 1;
}

template <class Bits>
std::uint16_t* Codes(std::span<Bits> to) {
  return reinterpret_cast<std::uint16_t*>(to.data());
}

template <class Format, class Bits>
void NarrowAll(const Backend& backend, In from, std::span<Bits> to, Overflow overflow,
               std::uint64_t* overflowed) {
  if (from.empty()) return;
  const bool packed = Aligned(from.data(), to.data());
  Launch(backend, "narrow", BlocksForPacks(backend, from.size(), packed), kThreads,
         packed ? NarrowKernel<Format, true> : NarrowKernel<Format, false>, from.data(),
         from.size(), LargestCode<Format>(overflow), Codes(to), overflowed);
}

template <class Format, class Bits>
void FeedbackAll(const Backend& backend, In x, Out residual, std::span<Bits> to, Overflow overflow,
                 std::uint64_t* overflowed) {
  if (x.empty()) return;
  const bool packed = Aligned(x.data(), residual.data(), to.data());
  Launch(backend, "narrow with feedback", BlocksForPacks(backend, x.size(), packed, kFloats),
         kThreads, packed ? FeedbackKernel<Format, true> : FeedbackKernel<Format, false>, x.data(),
         x.size(), LargestCode<Format>(overflow), residual.data(), Codes(to), overflowed);
}

template <class Format, Then kThen, class Bits>
void WidenAll(const Backend& backend, std::span<const Bits> from, float weight, Out y) {
  if (from.empty()) return;
  const bool packed = Aligned(from.data(), y.data());
  Launch(backend, "widen", BlocksForPacks(backend, y.size(), packed, kFloats), kThreads,
         packed ? WidenKernel<Format, kThen, true> : WidenKernel<Format, kThen, false>,
         reinterpret_cast<const std::uint16_t*>(from.data()), y.size(), weight, y.data());
}

}  // namespace

void F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow,
              std::uint64_t* overflowed) {
  NarrowAll<F16>(backend, from, to, overflow, overflowed);
}

void F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to, Overflow overflow,
               std::uint64_t* overflowed) {
  NarrowAll<BF16>(backend, from, to, overflow, overflowed);
}

void F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                      Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll<F16>(backend, x, residual, to, overflow, overflowed);
}

void F32ToBF16Feedback(const Backend& backend, In x, Out residual, std::span<bfloat16_bits> to,
                       Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll<BF16>(backend, x, residual, to, overflow, overflowed);
}

void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to) {
  WidenAll<F16, Then::kStore>(backend, from, 1.0F, to);
}

void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to) {
  WidenAll<BF16, Then::kStore>(backend, from, 1.0F, to);
}

void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  WidenAll<F16, Then::kAdd>(backend, from, weight, y);
}

void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  WidenAll<F16, Then::kScale>(backend, from, weight, y);
}

void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y) {
  WidenAll<BF16, Then::kAdd>(backend, from, weight, y);
}

void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y) {
  WidenAll<BF16, Then::kScale>(backend, from, weight, y);
}

void Copy(const Backend& backend, In from, Out to) { CopyWords(backend, from, to); }

}  // namespace slimgrad::kernels::cuda
