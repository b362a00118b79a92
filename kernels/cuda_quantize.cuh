// Private to the cuda kernels of quantize.h and qsgd.h: what elements of a block share, rounding,
// forms of codes, decoding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_philox.cuh"
#include "kernels/cuda_saturate.cuh"
#include "kernels/quantize_call.h"

namespace slimgrad::kernels::cuda {

// i / d for i < n. A multiplication by ceil(2^64 / d) where that is exact: where n * d <= 2^64.
class Divisor {
 public:
  Divisor(std::size_t n, std::size_t d) : d_(d) {
    if (d > 1 && n - 1 <= ~std::uint64_t{0} / d) inverse_ = ~std::uint64_t{0} / d + 1;
  }
  __device__ std::size_t Quotient(std::size_t i) const {
    return inverse_ != 0 ? __umul64hi(i, inverse_) : i / d_;
  }

 private:
  std::size_t d_;
  std::uint64_t inverse_ = 0;
};

// Up to 8 consecutive elements, of one block: what a thread has at a time.
inline constexpr int kPiece = 8;
using Values = Pack<float, kPiece>;
static_assert(kPiece == kPackWidth && kPiece == kPhilox16s);

struct Piece {
  std::size_t at;
  unsigned count;
};

// The largest magnitude; these are in the order of their bits.
__device__ inline std::uint32_t TopMagnitude(const Values& v) {
  std::uint32_t top = 0;
  for (int k = 0; k < kPiece; ++k) top = max(top, __float_as_uint(v.at[k]) & kF32Magnitude);
  return top;
}

// What the elements of a block share.
class Scaling {
 public:
  __device__ Scaling(float scale, float largest) : scale_(scale) {
    const bool tiny = scale < kTiny;  // by IsTiny it takes more registers
    power_ = tiny ? kPower : 1.0F;
    inverse_ = tiny ? kInversePower : 1.0F;
    unit_ = Unit(scale, largest);
    factor_ = Factor(scale, largest);
  }

  // x in codes, not rounded. A multiplication by 1 changes nothing.
  __device__ Values operator()(Values x) const {
    if (power_ != 1.0F)
      for (float& value : x.at) value *= power_;
    for (float& value : x.at) value *= factor_;
    return x;
  }
  __device__ float Decode(float q) const {
    float decoded = q * unit_ * inverse_;
    if (decoded > scale_) decoded = scale_;
    if (decoded < -scale_) decoded = -scale_;
    return decoded;
  }

 private:
  float scale_, power_, inverse_, unit_, factor_;
};

// --- rounding

// Adding it leaves no bits behind the point, and at the bottom an integer of up to 22 bits in two's
// complement.
inline constexpr float kMagic = 0x1.8p23F;

// (r + 0.5) * 2^-16 of 8 elements from `at` on.
class Dithers {
 public:
  __device__ Dithers(const RandomKey& key, std::size_t at) : bits_(cuda::Philox(key, at / kPiece)) {
    if (at % kPiece != 0) Shift(cuda::Philox(key, at / kPiece + 1), at % kPiece);
  }
  // 16 bits below 0x4300 are 128 + r * 2^-16.
  __device__ float operator[](int k) const {
    const auto bits = __byte_perm(bits_.word[k / 2], 0x43000000, k % 2 == 0 ? 0x7610 : 0x7632);
    return __uint_as_float(bits) - (128.0F - 0x1p-17F);
  }

 private:
  // Elements from `by` on, of these and the next. By powers of two, as registers have no index.
  __device__ void Shift(const PhiloxBits& next, unsigned by) {
    std::uint32_t word[8];
    for (int w = 0; w < 4; ++w) word[w] = bits_.word[w], word[w + 4] = next.word[w];
    for (int w = 0; w < 6; ++w) word[w] = (by & 4) != 0 ? word[w + 2] : word[w];
    for (int w = 0; w < 5; ++w) word[w] = (by & 2) != 0 ? word[w + 1] : word[w];
    for (int w = 0; w < 4; ++w)
      bits_.word[w] = (by & 1) != 0 ? __funnelshift_r(word[w], word[w + 1], 16) : word[w];
  }

  PhiloxBits bits_;
};

// The integer that v becomes, plus kMagic. Rounding never takes v below -L, but may above.
__device__ inline float RoundNearest(float v) { return v + kMagic; }
__device__ inline float RoundStochastic(float v, float dither, float largest) {
  return __fadd_rd(fminf(v + dither, largest), kMagic);
}
// Of magnitudes.
__device__ inline float RoundLevel(float v, float dither, float largest) {
  const float level = RoundStochastic(fabsf(v), dither, largest) - kMagic;
  return copysignf(level, v) + kMagic;
}

// --- codes, kBits of each: byte by byte in memory

// The lowest kBits of 8 words, in the order of memory.
template <int kBits>
__device__ auto Packed(const std::uint32_t (&word)[kPiece]) {
  if constexpr (kBits == 8) {
    const auto four = [&](int k) {
      return __byte_perm(__byte_perm(word[k], word[k + 1], 0x0040),
                         __byte_perm(word[k + 2], word[k + 3], 0x0040), 0x5410);
    };
    return std::uint64_t{four(4)} << 32 | four(0);
  } else {
    std::uint32_t all = 0;
    for (int k = 0; k < kPiece; ++k) all |= (word[k] & 0xFU) << (4 * k);
    return all;
  }
}

// kWhole: what is whole may be written in one access.
template <int kBits, bool kWhole>
__device__ void StoreCodes(const std::uint32_t (&word)[kPiece], Piece piece, std::uint8_t* codes) {
  auto all = Packed<kBits>(word);
  std::uint8_t* const to = codes + piece.at * kBits / 8;
  if (kWhole && piece.count == kPiece) {
    *reinterpret_cast<decltype(all)*>(to) = all;
    return;
  }
  // A spare nibble is 0, also where what is not finite made one of what follows it.
  all &= ~decltype(all){0} >> (kBits * (kPiece - max(piece.count, 1U)));
  for (unsigned i = 0; i * 8 < piece.count * kBits; ++i, all >>= 8)
    to[i] = static_cast<std::uint8_t>(all);
}

template <int kBits>
__device__ float CodeAt(const std::uint8_t* codes, std::size_t i) {
  if constexpr (kBits == 8) {
    return static_cast<float>(static_cast<std::int8_t>(codes[i]));
  } else {
    const unsigned nibble = codes[i / 2] >> (4 * (i % 2)) & 0xFU;
    return static_cast<float>(static_cast<int>(nibble << 28) >> 28);
  }
}

// --- decoding

// Elements that a thread takes at a time: one access of fp32, so that a warp's stores fill whole
// sectors.
inline constexpr int kDecoded = 4;

template <int kBits, bool kAdd, bool kPacked>
__global__ void DecodeKernel(Guard guard, DecodeCall call, Divisor block) {
  if (guard.Closed()) return;
  ForPacks<kPacked, kDecoded>(call.n, [&]<int kWidth>(std::size_t i) {
    const Scaling scaling(call.scales[block.Quotient(i)], call.largest);
    Pack<float, kWidth> y = {};
    if constexpr (kAdd) y = LoadPack<kWidth>(call.y + i);
    if constexpr (kWidth == 1) {
      y.at[0] = y.at[0] + call.weight * scaling.Decode(CodeAt<kBits>(call.codes, i));
    } else {
      const auto codes = LoadPack<kWidth * kBits / 8>(call.codes + i * kBits / 8);
      for (int k = 0; k < kWidth; ++k)
        y.at[k] = y.at[k] + call.weight * scaling.Decode(CodeAt<kBits>(codes.at, k));
    }
    StorePack(y, call.y + i);
  });
}

template <int kBits>
void DecodeBlocks(const Backend& backend, const DecodeCall& call) {
  if (call.n == 0) return;
  const bool packed = (call.block % kDecoded == 0 || call.block >= call.n) && Aligned(call.y) &&
                      reinterpret_cast<std::uintptr_t>(call.codes) % (kDecoded * kBits / 8) == 0;
  const auto kernel =
      call.add ? (packed ? DecodeKernel<kBits, true, true> : DecodeKernel<kBits, true, false>)
               : (packed ? DecodeKernel<kBits, false, true> : DecodeKernel<kBits, false, false>);
  Launch(backend, "decode blocks", BlocksForPacks(backend, call.n, packed, kDecoded), kThreads,
         kernel, call, Divisor(call.n, std::min(call.block, call.n)));
}

}  // namespace slimgrad::kernels::cuda
