// Bytes an element, of what must be moved and of what is: CopyBytes 2, Fill 4, AddScaled and
// AddSaturated 12, Divide 8, CountNonFinite 4 or 2. One pass each.
#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_saturate.cuh"
#include "kernels/elementwise.h"

namespace slimgrad::kernels::cuda {
namespace {

template <bool kPacked>
__global__ void FillKernel(Guard guard, float value, float* y, std::size_t n) {
  if (guard.Closed()) return;
  ForPacks<kPacked, kFloats>(n, [&]<int kWidth>(std::size_t i) {
    Pack<float, kWidth> values;
    for (int k = 0; k < kWidth; ++k) values.at[k] = value;
    StorePack(values, y + i);
  });
}

struct Scaled {
  float weight;
  __device__ float operator()(float y, float x) const { return y + weight * x; }
};
struct Saturated {
  __device__ float operator()(float y, float x) const { return AddSaturating(y, x); }
};

template <bool kPacked, class Add>
__global__ void AddKernel(Guard guard, const float* x, Add add, float* y, std::size_t n) {
  if (guard.Closed()) return;
  ForPacks<kPacked, kFloats>(n, [&]<int kWidth>(std::size_t i) {
    const auto terms = LoadPack<kWidth>(x + i);
    auto sums = LoadPack<kWidth>(y + i);
    for (int k = 0; k < kWidth; ++k) sums.at[k] = add(sums.at[k], terms.at[k]);
    StorePack(sums, y + i);
  });
}

// As Clear of cuda_launch.cuh, if the guard is open.
__global__ void ClearKernel(Guard guard, std::uint64_t* number) {
  if (guard.Closed()) return;
  *number = 0;
}

template <bool kPacked>
__global__ void DivideKernel(Guard guard, float divisor, float* y, std::size_t n,
                             std::uint64_t* non_finite) {
  if (guard.Closed()) return;
  std::uint32_t count = 0;
  ForPacks<kPacked, kFloats>(n, [&]<int kWidth>(std::size_t i) {
    auto quotients = LoadPack<kWidth>(y + i);
    for (int k = 0; k < kWidth; ++k) {
      quotients.at[k] = quotients.at[k] / divisor;
      count += IsFinite(quotients.at[k]) ? 0 : 1;
    }
    StorePack(quotients, y + i);
  });
  AddCounts(count, non_finite);
}

// Words that a thread counts at a time: 32 bytes, since nothing but its loads is on the way.
template <class Word>
constexpr int kCounted = 32 / sizeof(Word);

// Counts the words that have all bits of the exponent set.
template <class Word, bool kPacked>
__global__ void CountKernel(Guard guard, const Word* x, std::size_t n, Word exponent,
                            std::uint64_t* total) {
  if (guard.Closed()) return;
  std::uint32_t count = 0;
  ForPacks<kPacked, kCounted<Word>>(n, [&]<int kWidth>(std::size_t i) {
    const auto words = LoadPack<kWidth>(x + i);
    for (int k = 0; k < kWidth; ++k) count += (words.at[k] & exponent) == exponent ? 1 : 0;
  });
  AddCounts(count, total);
}

void ClearNumber(const Backend& backend, std::uint64_t* number) {
  Launch(backend, "clear a number", 1, 1, ClearKernel, number);
}

template <class Add>
void AddAll(const Backend& backend, const char* name, In x, Add add, Out y) {
  if (x.empty()) return;
  const bool packed = Aligned(x.data(), y.data());
  Launch(backend, name, BlocksForPacks(backend, y.size(), packed, kFloats), kThreads,
         packed ? AddKernel<true, Add> : AddKernel<false, Add>, x.data(), add, y.data(), y.size());
}

template <class Word>
void CountIn(const Backend& backend, const ConstView& x, Word exponent, std::uint64_t* count) {
  ClearNumber(backend, count);
  if (x.numel == 0) return;
  const auto* words = static_cast<const Word*>(x.data);
  const bool packed = Aligned(words);
  Launch(backend, "count non-finite", BlocksForPacks(backend, x.numel, packed, kCounted<Word>),
         kThreads, packed ? CountKernel<Word, true> : CountKernel<Word, false>, words, x.numel,
         exponent, count);
}

}  // namespace

void CopyBytes(const Backend& backend, std::span<const std::byte> from, std::span<std::byte> to) {
  CopyWords(backend, from, to);
}

void Fill(const Backend& backend, float value, Out y) {
  if (y.empty()) return;
  const bool packed = Aligned(y.data());
  Launch(backend, "fill", BlocksForPacks(backend, y.size(), packed, kFloats), kThreads,
         packed ? FillKernel<true> : FillKernel<false>, value, y.data(), y.size());
}

void AddScaled(const Backend& backend, In x, float weight, Out y) {
  AddAll(backend, "add scaled", x, Scaled{weight}, y);
}

void AddSaturated(const Backend& backend, In x, Out y) {
  AddAll(backend, "add saturated", x, Saturated{}, y);
}

void Divide(const Backend& backend, float divisor, Out y, std::uint64_t* non_finite) {
  ClearNumber(backend, non_finite);
  if (y.empty()) return;
  const bool packed = Aligned(y.data());
  Launch(backend, "divide", BlocksForPacks(backend, y.size(), packed, kFloats), kThreads,
         packed ? DivideKernel<true> : DivideKernel<false>, divisor, y.data(), y.size(),
         non_finite);
}

void CountNonFinite(const Backend& backend, const ConstView& x, std::uint64_t* count) {
  switch (x.dtype) {
    case DType::kF32: return CountIn<std::uint32_t>(backend, x, 0x7F800000, count);
    case DType::kF16: return CountIn<std::uint16_t>(backend, x, F16::kInfinity, count);
    default: return CountIn<std::uint16_t>(backend, x, BF16::kInfinity, count);
  }
}

}  // namespace slimgrad::kernels::cuda
