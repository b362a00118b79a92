// Private to the cpu kernels: vectors of bytes, and those that four vectors of wider lanes become.
// Compiled once for each instruction set, as simd-inl.h is.
#if defined(SLIMGRAD_KERNELS_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_BYTES_INL_H_
#undef SLIMGRAD_KERNELS_BYTES_INL_H_
#else
#define SLIMGRAD_KERNELS_BYTES_INL_H_
#endif

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using DU8 = hn::Repartition<std::uint8_t, DF>;
using VU8 = hn::Vec<DU8>;
inline constexpr DU8 kU8;
inline constexpr std::size_t kLanes8 = 4 * kLanes;

// Four vectors of fp32 give one of bytes.
inline constexpr std::size_t kQuads = kGroupVectors / 4;

// Where the lowest bytes of a vector's lanes go in each part of 128 bits, for each of four vectors;
// 0x80 is a zero. And the order of the words that they form.
struct LowestByteTables {
  constexpr LowestByteTables() {
    constexpr std::size_t kParts = kLanes / 4;
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t i = 0; i < kLanes8; ++i)
        pick[k][i] = i % 16 / 4 == k ? static_cast<std::uint8_t>(i % 4 * 4) : 0x80;
    for (std::size_t j = 0; j < kLanes; ++j)
      order[j] = static_cast<std::int32_t>(j % kParts * 4 + j / kParts);
  }

  HWY_ALIGN std::uint8_t pick[4][kLanes8] = {};
  HWY_ALIGN std::int32_t order[kLanes] = {};
};
inline constexpr LowestByteTables kLowestBytes;

// The lowest bytes of all lanes of four vectors, in order.
HWY_INLINE VU8 LowestBytes(const VU (&v)[4]) {
  VU8 picked[4];
  Unroll<4>([&](auto k) HWY_ATTR {
    picked[k] =
        hn::TableLookupBytesOr0(hn::BitCast(kU8, v[k]), hn::Load(kU8, kLowestBytes.pick[k]));
  });
  const VU8 bytes = hn::Or(hn::Or(picked[0], picked[1]), hn::Or(picked[2], picked[3]));
  if constexpr (kLanes == 4) {
    return bytes;
  } else {
    // Part i of 128 bits has word i of each vector.
    return hn::BitCast(kU8, hn::TableLookupLanes(hn::BitCast(kU32, bytes),
                                                 hn::SetTableIndices(kU32, kLowestBytes.order)));
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
