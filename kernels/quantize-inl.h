// Private to the cpu kernels of quantize.h and qsgd.h: their inner loops, for a form of codes, a
// rounding and a scale. Compiled once for each instruction set.
//
// A block is read twice, for its scale and for its codes; the second time it is in the first cache.
#if defined(SLIMGRAD_KERNELS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_QUANTIZE_INL_H_
#undef SLIMGRAD_KERNELS_QUANTIZE_INL_H_
#else
#define SLIMGRAD_KERNELS_QUANTIZE_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu_quantize.h"
#include "kernels/cpu_saturate.h"
#include "kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using DU8 = hn::Repartition<std::uint8_t, DF>;
using VU8 = hn::Vec<DU8>;
inline constexpr DU8 kU8;
inline constexpr std::size_t kLanes8 = 4 * kLanes;

// Four vectors of fp32 give one of bytes.
inline constexpr std::size_t kQuads = kGroupVectors / 4;

// Adding it leaves no bits behind the point, rounds ties to even, and leaves an integer of up to 22
// bits in two's complement at the bottom.
inline constexpr float kMagic = 0x1.8p23F;

// --- codes

// Codes are aligned to 16 bytes at least; of smaller pieces the processor makes whole lines.
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

// --- decoding

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

template <class Codes, bool kAdd, bool kStream, bool kTiny>
HWY_INLINE void DecodeBlock(const std::uint8_t* codes, std::size_t count, float scale,
                            float largest, VF weight, float* y) {
  const Decoder<kTiny> decoder(scale, largest);
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup)
    DecodeGroup<Codes, kAdd, kStream>(codes + Codes::Bytes(i), decoder, weight, y + i);
  if (i == count) return;
  const Padded<std::uint8_t> rest(codes + Codes::Bytes(i), Codes::Bytes(count - i));
  Padded<float> values(y + i, kAdd ? count - i : 0);
  DecodeGroup<Codes, kAdd, false>(rest.at, decoder, weight, values.at);
  values.CopyTo(y + i, count - i);
}

template <class Codes, bool kAdd, bool kStream>
HWY_FLATTEN void DecodeBlocks(const DecodeCall& call, std::size_t first, std::size_t last) {
  const VF weight = hn::Set(kF32, call.weight);
  for (std::size_t b = first; b < last; ++b) {
    const std::size_t begin = b * call.block;
    const std::size_t count = std::min(call.block, call.n - begin);
    const float scale = call.scales[b];
    const auto decode = [&](auto tiny) HWY_ATTR {
      DecodeBlock<Codes, kAdd, kStream, tiny>(call.codes + Codes::Bytes(begin), count, scale,
                                              call.largest, weight, call.y + begin);
    };
    if (HWY_UNLIKELY(IsTiny(scale))) {
      decode(std::true_type());
    } else {
      decode(std::false_type());
    }
  }
  if (kStream) FlushStream();
}

template <class Codes>
void Decode(const DecodeCall& call, std::size_t first, std::size_t last) {
  if (call.add) return DecodeBlocks<Codes, true, false>(call, first, last);
  if (call.stream) return DecodeBlocks<Codes, false, true>(call, first, last);
  DecodeBlocks<Codes, false, false>(call, first, last);
}

// --- rounding: of four vectors, with the random numbers of their elements

// The magic number rounds.
struct Nearest {
  explicit Nearest(const EncodeCall& /*call*/) {}
  HWY_INLINE const float* Draw(std::size_t /*index*/) { return nullptr; }
  HWY_INLINE void operator()(VF (&/*v*/)[4], const float* /*dither*/) const {}
};

// (r + 0.5) * 2^-16 of consecutive elements, a piece at a time: it matters little where blocks
// begin and how long they are.
class Dither {
 public:
  explicit Dither(const RandomKey& key) : philox_(key) {}

  // Those of the group that begins with element `index` of the call. Later calls go on from there.
  HWY_INLINE const float* Draw(std::size_t index) {
    if (HWY_UNLIKELY(index + kGroup > begin_ + kPiece || index < begin_)) Refill(index);
    return piece_ + (index - begin_);
  }

 private:
  // A group may begin with the last element of a call of PhiloxVectors.
  static constexpr std::size_t kPiece = 512;
  static_assert(kPiece % PhiloxVectors::kElements == 0);
  static_assert(PhiloxVectors::kElements + kGroup <= kPiece);

  // 16 bits below 0x4300 are 128 + r * 2^-16.
  HWY_INLINE void Refill(std::size_t index) {
    begin_ = index - index % PhiloxVectors::kElements;
    for (std::size_t i = 0; i < kPiece; i += PhiloxVectors::kElements) {
      VU bits[PhiloxVectors::kVectors];
      philox_.Random16s(begin_ + i, 0x43000000, bits);
      Unroll<PhiloxVectors::kVectors>([&](auto k) HWY_ATTR {
        hn::Store(hn::BitCast(kF32, bits[k]) - hn::Set(kF32, 128.0F - 0x1p-17F), kF32,
                  piece_ + i + k * kLanes);
      });
    }
  }

  PhiloxVectors philox_;
  HWY_ALIGN float piece_[kPiece];
  std::size_t begin_ = ~std::size_t{0};
};

// Rounding never takes v below -L, but may take it above L.
class Stochastic {
 public:
  explicit Stochastic(const EncodeCall& call)
      : dither_(call.key), largest_(hn::Set(kF32, call.largest)) {}
  HWY_INLINE const float* Draw(std::size_t index) { return dither_.Draw(index); }
  HWY_INLINE void operator()(VF (&v)[4], const float* dither) const {
    Unroll<4>([&](auto k) HWY_ATTR {
      v[k] = hn::Floor(hn::Min(v[k] + hn::LoadU(kF32, dither + k * kLanes), largest_));
    });
  }

 private:
  Dither dither_;
  VF largest_;
};

// Of magnitudes.
class StochasticLevel {
 public:
  explicit StochasticLevel(const EncodeCall& call)
      : dither_(call.key), largest_(hn::Set(kF32, call.largest)) {}
  HWY_INLINE const float* Draw(std::size_t index) { return dither_.Draw(index); }
  HWY_INLINE void operator()(VF (&v)[4], const float* dither) const {
    Unroll<4>([&](auto k) HWY_ATTR {
      const VF dithered = hn::Abs(v[k]) + hn::LoadU(kF32, dither + k * kLanes);
      v[k] = hn::CopySignToAbs(hn::Floor(hn::Min(dithered, largest_)), v[k]);
    });
  }

 private:
  Dither dither_;
  VF largest_;
};

// --- encoding

// With error feedback, a block is what its residual has become, and is written back to.
template <bool kFeedback>
using Values = std::conditional_t<kFeedback, float*, const float*>;

template <bool kTiny>
struct Encoder {
  Encoder(float scale, float largest)
      : factor(hn::Set(kF32, Factor(scale, largest))), decoder(scale, largest) {}

  HWY_INLINE VF operator()(VF x) const {
    if constexpr (kTiny) x = x * hn::Set(kF32, kPower);
    return x * factor;
  }

  VF factor;
  Decoder<kTiny> decoder;
};

template <class Codes, class Rounder, bool kFeedback, bool kStream, bool kTiny>
HWY_INLINE void EncodeGroup(Values<kFeedback> HWY_RESTRICT values, const Encoder<kTiny>& encoder,
                            const Rounder& round, const float* HWY_RESTRICT dither,
                            std::uint8_t* HWY_RESTRICT codes) {
  const VF magic = hn::Set(kF32, kMagic);
  VU8 bytes[kQuads];
  Unroll<kQuads>([&](auto quad) HWY_ATTR {
    const auto at = values + quad * 4 * kLanes;
    VF v[4];
    Unroll<4>([&](auto k) HWY_ATTR { v[k] = encoder(hn::LoadU(kF32, at + k * kLanes)); });
    round(v, dither + quad * 4 * kLanes);
    VU code[4];
    Unroll<4>([&](auto k) HWY_ATTR {
      const VF shifted = v[k] + magic;
      code[k] = hn::BitCast(kU32, shifted);
      if constexpr (kFeedback) {
        const VF decoded = encoder.decoder(shifted - magic);
        hn::StoreU(hn::LoadU(kF32, at + k * kLanes) - decoded, kF32, at + k * kLanes);
      }
    });
    bytes[quad] = LowestBytes(code);
  });
  Codes::template Store<kStream>(bytes, codes);
}

// Blocks whose scales are found before the first of them is encoded: their reductions and divisions
// overlap. They stay in the first cache.
inline constexpr std::size_t kAheadElements = 1024;

template <class Codes, bool kFeedback, bool kStream, bool kTiny, class Rounder>
HWY_INLINE void EncodeBlock(Values<kFeedback> values, std::size_t count, float scale, float largest,
                            Rounder& round, std::size_t index, std::uint8_t* codes) {
  const Encoder<kTiny> encoder(scale, largest);
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup) {
    EncodeGroup<Codes, Rounder, kFeedback, kStream>(values + i, encoder, round,
                                                    round.Draw(index + i), codes + Codes::Bytes(i));
  }
  if (i == count) return;
  Padded<float> rest(values + i, count - i);
  Padded<std::uint8_t> bytes;
  EncodeGroup<Codes, Rounder, kFeedback, false>(rest.at, encoder, round, round.Draw(index + i),
                                                bytes.at);
  if constexpr (kFeedback) rest.CopyTo(values + i, count - i);
  bytes.CopyTo(codes + Codes::Bytes(i), Codes::Bytes(count - i));
}

// A group of x; with error feedback of residual + x, which becomes the residual.
template <bool kFeedback>
HWY_INLINE void LoadGroup(const float* HWY_RESTRICT in, float* HWY_RESTRICT residual,
                          VF (&x)[kGroupVectors]) {
  VU top = hn::Zero(kU32);
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    x[v] = hn::LoadU(kF32, in + v * kLanes);
    if constexpr (kFeedback) {
      x[v] = hn::LoadU(kF32, residual + v * kLanes) + x[v];
      top = MaxMagnitude(top, Magnitude(x[v]));
    }
  });
  if constexpr (kFeedback) {
    if (HWY_UNLIKELY(AnyAtLeast(top, 0x7F800000))) {
      for (std::size_t i = 0; i < kGroup; ++i) residual[i] = SaturatedSum(residual[i], in[i]);
      Unroll<kGroupVectors>([&](auto v)
                                HWY_ATTR { x[v] = hn::LoadU(kF32, residual + v * kLanes); });
    } else {
      Unroll<kGroupVectors>([&](auto v)
                                HWY_ATTR { hn::StoreU(x[v], kF32, residual + v * kLanes); });
    }
  }
}

// The scale of a block's values, which with error feedback become residual + x first.
template <class Scale, bool kFeedback>
float ScaleOf(const float* in, float* residual, std::size_t count) {
  Scale scale;
  VF x[kGroupVectors];
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup) {
    LoadGroup<kFeedback>(in + i, residual + i, x);
    scale.Add(x);
  }
  if (i < count) {
    const Padded<float> values(in + i, count - i);
    Padded<float> rest(residual + i, kFeedback ? count - i : 0);
    LoadGroup<kFeedback>(values.at, rest.at, x);
    if constexpr (kFeedback) rest.CopyTo(residual + i, count - i);
    scale.Add(x);
  }
  return scale.Of(kFeedback ? residual : in, count);
}

// Flattened, as compilers leave what is called often out of line, vectors and all.
template <class Codes, class Rounder, class Scale, bool kFeedback, bool kStream>
HWY_FLATTEN void EncodeBlocks(const EncodeCall& call, std::size_t first, std::size_t last) {
  Rounder round(call);
  const std::size_t ahead = std::max<std::size_t>(1, kAheadElements / call.block);
  const auto count = [&](std::size_t b) { return std::min(call.block, call.n - b * call.block); };
  for (std::size_t begin = first; begin < last; begin += ahead) {
    const std::size_t end = begin + std::min(ahead, last - begin);
    for (std::size_t b = begin; b < end; ++b)
      call.scales[b] = ScaleOf<Scale, kFeedback>(
          call.x + b * call.block, kFeedback ? call.residual + b * call.block : nullptr, count(b));
    for (std::size_t b = begin; b < end; ++b) {
      const std::size_t at = b * call.block;
      Values<kFeedback> values;
      if constexpr (kFeedback) {
        values = call.residual + at;
      } else {
        values = call.x + at;
      }
      const auto encode = [&](auto tiny) HWY_ATTR {
        EncodeBlock<Codes, kFeedback, kStream, tiny>(values, count(b), call.scales[b], call.largest,
                                                     round, at, call.codes + Codes::Bytes(at));
      };
      if (HWY_UNLIKELY(IsTiny(call.scales[b]))) {
        encode(std::true_type());
      } else {
        encode(std::false_type());
      }
    }
  }
  if (kStream) FlushStream();
}

template <class Codes, class Rounder, class Scale>
void Encode(const EncodeCall& call, std::size_t first, std::size_t last) {
  if (call.residual != nullptr && call.stream)
    return EncodeBlocks<Codes, Rounder, Scale, true, true>(call, first, last);
  if (call.residual != nullptr)
    return EncodeBlocks<Codes, Rounder, Scale, true, false>(call, first, last);
  if (call.stream) return EncodeBlocks<Codes, Rounder, Scale, false, true>(call, first, last);
  EncodeBlocks<Codes, Rounder, Scale, false, false>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
