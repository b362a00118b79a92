// Bytes an element of size s, of what must be moved and of what is: (ranks + 1) s, in one pass.
//
// The addresses of up to kDirect ranks are parameters of the kernel. Those of more ranks are
// written to the stream's workspace by kernels that have them as parameters, so that a captured
// graph needs nothing of the host's memory.
#include <algorithm>
#include <limits>

#include "core/check.h"
#include "kernels/combine.h"
#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_saturate.cuh"

namespace slimgrad::kernels::cuda {
namespace {

using Inputs = std::span<const std::span<const std::byte>>;

constexpr std::size_t kDirect = 256;

struct Addresses {
  const std::byte* at[kDirect];
};

struct Ranks {
  std::uint32_t count;
  const std::byte* const* table;  // null where `direct` has them
  Addresses direct;

  __device__ const std::byte* operator[](std::uint32_t r) const {
    return table != nullptr ? table[r] : direct.at[r];
  }
};

// How elements are read and written: 16 bytes at a time, one at a time, or, where they are not
// aligned, by their bytes.
enum class Access { kPacks, kElements, kBytes };

template <Access kAccess, int kWidth, class T>
__device__ Pack<T, kWidth> LoadFrom(const std::byte* from, std::size_t i) {
  if constexpr (kAccess != Access::kBytes) {
    return LoadPack<kWidth>(reinterpret_cast<const T*>(from) + i);
  } else {
    std::uint64_t word = 0;
    for (std::size_t b = 0; b < sizeof(T); ++b)
      word |= static_cast<std::uint64_t>(from[i * sizeof(T) + b]) << (8 * b);
    Pack<T, 1> pack;
    __builtin_memcpy(pack.at, &word, sizeof(T));
    return pack;
  }
}

template <Access kAccess, int kWidth, class T>
__device__ void StoreAt(const Pack<T, kWidth>& pack, std::byte* to, std::size_t i) {
  if constexpr (kAccess != Access::kBytes) {
    StorePack(pack, reinterpret_cast<T*>(to) + i);
  } else {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, pack.at, sizeof(T));
    for (std::size_t b = 0; b < sizeof(T); ++b)
      to[i * sizeof(T) + b] = static_cast<std::byte>(word >> (8 * b));
  }
}

// fp32 as a format of cuda_half.cuh.
struct F32 {
  static __device__ float Widen(float value) { return value; }
};

template <class Value, class ValueFormat>
struct Mean {
  using T = Value;
  using Format = ValueFormat;

  template <int kWidth>
  static __device__ Pack<float, kWidth> Start(const Pack<T, kWidth>& x) {
    Pack<float, kWidth> sums;
    for (int k = 0; k < kWidth; ++k) sums.at[k] = Format::Widen(x.at[k]);
    return sums;
  }
  template <int kWidth>
  static __device__ void Fold(Pack<float, kWidth>& sums, const Pack<T, kWidth>& x) {
    for (int k = 0; k < kWidth; ++k) sums.at[k] = sums.at[k] + Format::Widen(x.at[k]);
  }
  template <Access kAccess, int kWidth>
  static __device__ Pack<T, kWidth> Finish(const Pack<float, kWidth>& sums, const Ranks& ranks,
                                           std::size_t i) {
    Pack<T, kWidth> means;
    for (int k = 0; k < kWidth; ++k) {
      float mean = sums.at[k] / static_cast<float>(ranks.count);
      if (!IsFinite(sums.at[k])) mean = WideMean<kAccess>(ranks, i + k);
      means.at[k] = Narrowed(mean);
    }
    return means;
  }

 private:
  template <Access kAccess>
  static __device__ float WideMean(const Ranks& ranks, std::size_t i) {
    double sum = 0;
#pragma unroll 1
    for (std::uint32_t r = 0; r < ranks.count; ++r) {
      const double x = Format::Widen(LoadFrom<kAccess, 1, T>(ranks[r], i).at[0]);
      sum = r == 0 ? x : sum + x;
    }
    const float mean = SaturateToFloat(sum / static_cast<double>(ranks.count));
    return IsNan(mean) ? __uint_as_float(kF32QuietNan) : mean;
  }
  static __device__ T Narrowed(float mean) {
    if constexpr (sizeof(T) == sizeof(float)) {
      return mean;
    } else {
      std::uint32_t overflowed = 0;
      return Narrow<Format>(mean, Format::kInfinity - 1, overflowed);
    }
  }
};

// What is folded into the result itself.
template <class Value, class FoldTwo>
struct Folded {
  using T = Value;

  template <int kWidth>
  static __device__ Pack<T, kWidth> Start(const Pack<T, kWidth>& x) {
    return x;
  }
  template <int kWidth>
  static __device__ void Fold(Pack<T, kWidth>& folded, const Pack<T, kWidth>& x) {
    for (int k = 0; k < kWidth; ++k) folded.at[k] = FoldTwo()(folded.at[k], x.at[k]);
  }
  template <Access kAccess, int kWidth>
  static __device__ Pack<T, kWidth> Finish(const Pack<T, kWidth>& folded, const Ranks&,
                                           std::size_t) {
    return folded;
  }
};

struct SumOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct MaxOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? b : a;  // a, if they are equal
  }
};

// `to` may be rank 0's memory: an element is read before it is written.
template <class Kind, Access kAccess>
__global__ void CombineKernel(Guard guard, const __grid_constant__ Ranks ranks, std::size_t n,
                              std::byte* to) {
  if (guard.Closed()) return;
  using T = typename Kind::T;
  constexpr int kMost = 16 / sizeof(T);
  ForPacks<kAccess == Access::kPacks, kMost>(n, [&]<int kWidth>(std::size_t i) {
    auto folded = Kind::Start(LoadFrom<kAccess, kWidth, T>(ranks[0], i));
#pragma unroll 4
    for (std::uint32_t r = 1; r < ranks.count; ++r)
      Kind::Fold(folded, LoadFrom<kAccess, kWidth, T>(ranks[r], i));
    StoreAt<kAccess>(Kind::template Finish<kAccess>(folded, ranks, i), to, i);
  });
}

__global__ void TableKernel(Guard guard, const __grid_constant__ Addresses addresses,
                            std::uint32_t count, const std::byte** table) {
  if (guard.Closed()) return;
  if (threadIdx.x < count) table[threadIdx.x] = addresses.at[threadIdx.x];
}

Addresses AddressesOf(Inputs inputs) {
  Addresses addresses = {};
  for (std::size_t r = 0; r < inputs.size(); ++r) addresses.at[r] = inputs[r].data();
  return addresses;
}

Ranks RanksOf(const Backend& backend, Inputs inputs) {
  Ranks ranks = {.count = static_cast<std::uint32_t>(inputs.size())};
  if (inputs.size() <= kDirect) {
    ranks.direct = AddressesOf(inputs);
    return ranks;
  }
  const std::span<std::byte> workspace = backend.cuda->workspace();
  SLIMGRAD_CHECK(inputs.size() <= workspace.size() / sizeof(const std::byte*));
  auto** const table = reinterpret_cast<const std::byte**>(workspace.data());
  for (std::size_t first = 0; first < inputs.size(); first += kDirect) {
    const Inputs some = inputs.subspan(first, std::min(kDirect, inputs.size() - first));
    Launch(backend, "table of ranks", 1, kDirect, TableKernel, AddressesOf(some), some.size(),
           table + first);
  }
  ranks.table = table;
  return ranks;
}

bool AllAligned(Inputs inputs, std::span<std::byte> to, std::size_t bytes) {
  const auto aligned = [bytes](const std::byte* p) {
    return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
  };
  return aligned(to.data()) && std::all_of(inputs.begin(), inputs.end(),
                                           [&](const auto& i) { return aligned(i.data()); });
}

template <class Kind>
void CombineAs(const Backend& backend, Inputs inputs, std::span<std::byte> to) {
  constexpr std::size_t kSize = sizeof(typename Kind::T);
  const std::size_t n = to.size() / kSize;
  const bool packed = AllAligned(inputs, to, 16);
  auto* const kernel = packed                          ? CombineKernel<Kind, Access::kPacks>
                       : AllAligned(inputs, to, kSize) ? CombineKernel<Kind, Access::kElements>
                                                       : CombineKernel<Kind, Access::kBytes>;
  Launch(backend, "combine", BlocksForPacks(backend, n, packed, 16 / kSize), kThreads, kernel,
         RanksOf(backend, inputs), n, to.data());
}

}  // namespace

void Combine(const Backend& backend, CombineOp op, DType dtype, Inputs inputs,
             std::span<std::byte> to) {
  if (to.empty()) return;
  switch (dtype) {
    case DType::kF32:
      if (op == CombineOp::kMean) return CombineAs<Mean<float, F32>>(backend, inputs, to);
      return CombineAs<Folded<float, MaxOf>>(backend, inputs, to);
    case DType::kF16: return CombineAs<Mean<std::uint16_t, F16>>(backend, inputs, to);
    case DType::kBF16: return CombineAs<Mean<std::uint16_t, BF16>>(backend, inputs, to);
    case DType::kI32:  // as unsigned: wraps
      return CombineAs<Folded<std::uint32_t, SumOf>>(backend, inputs, to);
    case DType::kU64: return CombineAs<Folded<std::uint64_t, SumOf>>(backend, inputs, to);
    default: return CombineAs<Folded<std::uint8_t, MaxOf>>(backend, inputs, to);
  }
}

}  // namespace slimgrad::kernels::cuda
