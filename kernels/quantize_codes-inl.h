// Private to the cpu kernels of quantize.h and qsgd.h: forms of codes, and decoding. Compiled once
// for each instruction set.
#if defined(SLIMGRAD_KERNELS_QUANTIZE_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_QUANTIZE_CODES_INL_H_
#undef SLIMGRAD_KERNELS_QUANTIZE_CODES_INL_H_
#else
#define SLIMGRAD_KERNELS_QUANTIZE_CODES_INL_H_
#endif

#include "kernels/bytes-inl.h"
#include "kernels/cpu_ranges.h"
#include "kernels/quantize_call.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Streamed codes are aligned to 16 bytes at least; of smaller pieces the processor makes whole
// lines.
template <bool kStream, class D>
HWY_INLINE void StoreCodes(hn::Vec<D> v, D d, std::uint8_t* to) {
  if constexpr (!kStream) {
    hn::StoreU(v, d, to);
  } else if constexpr (hn::MaxLanes(D()) == 16) {
    hn::Stream(v, d, to);
  } else if (reinterpret_cast<std::uintptr_t>(to) % hn::MaxLanes(D()) == 0) {
    hn::Stream(v, d, to);
  } else {
    const hn::Half<D> half;
    StoreCodes<true>(hn::LowerHalf(half, v), half, to);
    StoreCodes<true>(hn::UpperHalf(half, v), half, to + hn::MaxLanes(half));
  }
}

struct Int8Codes {
  static constexpr std::size_t Bytes(std::size_t elements) { return elements; }

  // The codes of a group, bytes in order.
  template <bool kStream>
  static HWY_INLINE void Store(const VU8 (&bytes)[kQuads], std::uint8_t* to) {
    Unroll<kQuads>([&](auto j) HWY_ATTR { StoreCodes<kStream>(bytes[j], kU8, to + j * kLanes8); });
  }

  // A group as bytes of two's complement; `spare` is memory for them.
  static HWY_INLINE const std::int8_t* Bytes(const std::uint8_t* from, std::int8_t* /*spare*/) {
    return reinterpret_cast<const std::int8_t*>(from);
  }
};

struct Int4Codes {
  using DU16 = hn::Repartition<std::uint16_t, DF>;

  static constexpr std::size_t Bytes(std::size_t elements) { return Int4Bytes(elements); }

  // Neighbouring bytes joined, in 16 bits.
  static HWY_INLINE hn::Vec<DU16> Join(VU8 bytes) {
    const DU16 u16;
    const auto pair = hn::BitCast(u16, bytes);
    return hn::Or(hn::And(pair, hn::Set(u16, 0x000F)),
                  hn::And(hn::ShiftRight<4>(pair), hn::Set(u16, 0x00F0)));
  }

  template <bool kStream>
  static HWY_INLINE void Store(const VU8 (&bytes)[kQuads], std::uint8_t* to) {
    if constexpr (kQuads == 1) {
      const hn::Half<DU8> half;
      const auto joined = hn::BitCast(hn::RebindToSigned<DU16>(), Join(bytes[0]));
      StoreCodes<kStream>(hn::DemoteTo(half, joined), half, to);
    } else {
      Unroll<kQuads / 2>([&](auto j) HWY_ATTR {
        const auto low = hn::BitCast(kU8, Join(bytes[2 * j]));
        const auto high = hn::BitCast(kU8, Join(bytes[2 * j + 1]));
        StoreCodes<kStream>(hn::ConcatEven(kU8, high, low), kU8, to + j * kLanes8);
      });
    }
  }

  static HWY_INLINE const std::int8_t* Bytes(const std::uint8_t* from, std::int8_t* spare) {
    const DU16 u16;
    const hn::Half<DU8> half;
    Unroll<kQuads>([&](auto j) HWY_ATTR {
      const auto byte = hn::PromoteTo(u16, hn::LoadU(half, from + j * kLanes8 / 2));
      const auto nibbles = hn::BitCast(kU8, hn::Or(byte, hn::ShiftLeft<4>(byte)));
      const auto sign = hn::Set(kU8, 8);
      const auto codes = hn::Xor(hn::And(nibbles, hn::Set(kU8, 0x0F)), sign) - sign;
      hn::StoreU(codes, kU8, reinterpret_cast<std::uint8_t*>(spare) + j * kLanes8);
    });
    return spare;
  }
};

// What a block's codes stand for. Where a block is not tiny, its power is 1.
template <bool kTiny>
struct Decoder {
  Decoder(float scale, float largest)
      : unit(hn::Set(kF32, Unit(scale, largest))),
        limit(hn::Set(kF32, scale)),
        minus_limit(hn::Set(kF32, -scale)) {}

  // The operand that may be NaN comes second: x86 gives that one.
  HWY_INLINE VF operator()(VF code) const {
    VF decoded = code * unit;
    if constexpr (kTiny) decoded = decoded * hn::Set(kF32, kInversePower);
    return hn::Max(minus_limit, hn::Min(limit, decoded));
  }

  VF unit, limit, minus_limit;
};

template <class Codes, bool kAdd, bool kStream, bool kTiny>
HWY_INLINE void DecodeGroup(const std::uint8_t* HWY_RESTRICT from, const Decoder<kTiny>& decoder,
                            VF weight, float* HWY_RESTRICT y) {
  const hn::Rebind<std::int8_t, DF> narrow;
  HWY_ALIGN std::int8_t spare[kGroup];
  const std::int8_t* codes = Codes::Bytes(from, spare);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    const auto code = hn::PromoteTo(kI32, hn::LoadU(narrow, codes + v * kLanes));
    const VF product = weight * decoder(hn::ConvertTo(kF32, code));
    const VF before = kAdd ? hn::LoadU(kF32, y + v * kLanes) : hn::Zero(kF32);
    StoreAligned<kStream>(before + product, kF32, y + v * kLanes);
  });
}

// What is left of a block behind its groups. Out of line, as is all that is seldom: compilers take
// minutes for these loops otherwise.
template <class Codes, bool kAdd, bool kTiny>
HWY_NOINLINE void DecodeRest(const std::uint8_t* codes, std::size_t count,
                             const Decoder<kTiny>& decoder, float weight, float* y) {
  const Padded<std::uint8_t> rest(codes, Codes::Bytes(count));
  Padded<float> values(y, kAdd ? count : 0);
  DecodeGroup<Codes, kAdd, false>(rest.at, decoder, hn::Set(kF32, weight), values.at);
  values.CopyTo(y, count);
}

template <class Codes, bool kAdd, bool kStream, bool kTiny>
HWY_INLINE void DecodeBlock(const DecodeCall& call, std::size_t b) {
  const std::size_t begin = b * call.block;
  const std::size_t count = std::min(call.block, call.n - begin);
  const std::uint8_t* codes = call.codes + Codes::Bytes(begin);
  float* y = call.y + begin;
  const Decoder<kTiny> decoder(call.scales[b], call.largest);
  const VF weight = hn::Set(kF32, call.weight);
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup)
    DecodeGroup<Codes, kAdd, kStream>(codes + Codes::Bytes(i), decoder, weight, y + i);
  if (i < count)
    DecodeRest<Codes, kAdd>(codes + Codes::Bytes(i), count - i, decoder, call.weight, y + i);
}

template <class Codes, bool kAdd, bool kStream>
HWY_NOINLINE void DecodeTinyBlock(const DecodeCall& call, std::size_t b) {
  DecodeBlock<Codes, kAdd, kStream, true>(call, b);
}

template <class Codes, bool kAdd, bool kStream>
void DecodeBlocks(const DecodeCall& call, std::size_t first, std::size_t last) {
  for (std::size_t b = first; b < last; ++b) {
    if (HWY_UNLIKELY(IsTiny(call.scales[b]))) {
      DecodeTinyBlock<Codes, kAdd, kStream>(call, b);
    } else {
      DecodeBlock<Codes, kAdd, kStream, false>(call, b);
    }
  }
  if (kStream) FlushStream();
}

// Whether results that overwrite are streamed past the caches.
inline bool Streams(const DecodeCall& call) {
  return OutgrowsCaches(call.n * sizeof(float)) && call.block % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(call.y) % 64 == 0;
}

template <class Codes>
void Decode(const DecodeCall& call, std::size_t first, std::size_t last) {
  if (call.add) return DecodeBlocks<Codes, true, false>(call, first, last);
  if (Streams(call)) return DecodeBlocks<Codes, false, true>(call, first, last);
  DecodeBlocks<Codes, false, false>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
