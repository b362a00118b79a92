// Private to the cpu kernels of quantize.h and qsgd.h: encoding, for a form of codes, a rounding
// and a scale. Compiled once for each instruction set.
//
// A block is read twice, for its scale and for its codes; the second time it is in the first cache.
#if defined(SLIMGRAD_KERNELS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_QUANTIZE_INL_H_
#undef SLIMGRAD_KERNELS_QUANTIZE_INL_H_
#else
#define SLIMGRAD_KERNELS_QUANTIZE_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu_ranges.h"
#include "kernels/philox-inl.h"
#include "kernels/quantize_call.h"
#include "kernels/quantize_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Adding it leaves no bits behind the point, rounds ties to even, and leaves an integer of up to 22
// bits in two's complement at the bottom.
inline constexpr float kMagic = 0x1.8p23F;

// --- rounding: of four vectors, with the random numbers of their elements, dither[from] on

// The magic number rounds.
struct Nearest {
  explicit Nearest(const EncodeCall& /*call*/) {}
  HWY_INLINE const float* Draw(std::size_t /*index*/) { return nullptr; }
  HWY_INLINE void operator()(VF (&/*v*/)[4], const float* /*dither*/, std::size_t /*from*/) const {}
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
  HWY_NOINLINE HWY_FLATTEN void Refill(std::size_t index) {
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
  HWY_INLINE void operator()(VF (&v)[4], const float* dither, std::size_t from) const {
    Unroll<4>([&](auto k) HWY_ATTR {
      v[k] = hn::Floor(hn::Min(v[k] + hn::LoadU(kF32, dither + from + k * kLanes), largest_));
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
  HWY_INLINE void operator()(VF (&v)[4], const float* dither, std::size_t from) const {
    Unroll<4>([&](auto k) HWY_ATTR {
      const VF dithered = hn::Abs(v[k]) + hn::LoadU(kF32, dither + from + k * kLanes);
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
    round(v, dither, quad * 4 * kLanes);
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

// What is left of a block behind its groups.
template <class Codes, bool kFeedback, bool kTiny, class Rounder>
HWY_NOINLINE HWY_FLATTEN void EncodeRest(Values<kFeedback> values, std::size_t count,
                                         const Encoder<kTiny>& encoder, const Rounder& round,
                                         const float* dither, std::uint8_t* codes) {
  Padded<float> rest(values, count);
  Padded<std::uint8_t> bytes;
  EncodeGroup<Codes, Rounder, kFeedback, false>(rest.at, encoder, round, dither, bytes.at);
  if constexpr (kFeedback) rest.CopyTo(values, count);
  bytes.CopyTo(codes, Codes::Bytes(count));
}

template <class Codes, bool kFeedback, bool kStream, bool kTiny, class Rounder>
HWY_INLINE void EncodeBlock(const EncodeCall& call, std::size_t b, Rounder& round) {
  const std::size_t begin = b * call.block;
  const std::size_t count = std::min(call.block, call.n - begin);
  std::uint8_t* codes = call.codes + Codes::Bytes(begin);
  Values<kFeedback> values;
  if constexpr (kFeedback) {
    values = call.residual + begin;
  } else {
    values = call.x + begin;
  }
  const Encoder<kTiny> encoder(call.scales[b], call.largest);
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup)
    EncodeGroup<Codes, Rounder, kFeedback, kStream>(values + i, encoder, round,
                                                    round.Draw(begin + i), codes + Codes::Bytes(i));
  if (i < count)
    EncodeRest<Codes, kFeedback>(values + i, count - i, encoder, round, round.Draw(begin + i),
                                 codes + Codes::Bytes(i));
}

template <class Codes, bool kFeedback, bool kStream, class Rounder>
HWY_NOINLINE HWY_FLATTEN void EncodeTinyBlock(const EncodeCall& call, std::size_t b,
                                              Rounder& round) {
  EncodeBlock<Codes, kFeedback, kStream, true>(call, b, round);
}

// A group of x; with error feedback of residual + x, which becomes the residual.
template <bool kFeedback>
HWY_INLINE void LoadGroup(const float* HWY_RESTRICT in, float* HWY_RESTRICT residual,
                          VF (&x)[kGroupVectors]) {
  if constexpr (kFeedback) {
    if (HWY_UNLIKELY(!SumGroup(in, residual, x))) {
      AddSaturatedOneByOne(in, residual);
      Unroll<kGroupVectors>([&](auto v)
                                HWY_ATTR { x[v] = hn::LoadU(kF32, residual + v * kLanes); });
    } else {
      Unroll<kGroupVectors>([&](auto v)
                                HWY_ATTR { hn::StoreU(x[v], kF32, residual + v * kLanes); });
    }
  } else {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR { x[v] = hn::LoadU(kF32, in + v * kLanes); });
  }
}

// The scale of a block's values, which with error feedback become residual + x first.
template <class Scale, bool kFeedback>
float ScaleOf(const float* in, float* residual, std::size_t count) {
  Scale scale;
  VF x[kGroupVectors];
  std::size_t i = 0;
  for (; count - i >= kGroup; i += kGroup) {
    LoadGroup<kFeedback>(in + i, kFeedback ? residual + i : nullptr, x);
    scale.Add(x);
  }
  if (i < count) {
    const Padded<float> values(in + i, count - i);
    Padded<float> rest;
    if constexpr (kFeedback) rest = Padded<float>(residual + i, count - i);
    LoadGroup<kFeedback>(values.at, rest.at, x);
    if constexpr (kFeedback) rest.CopyTo(residual + i, count - i);
    scale.Add(x);
  }
  return scale.Of(kFeedback ? residual : in, count);
}

// Blocks whose scales are found before the first of them is encoded: their reductions and divisions
// overlap. They stay in the first cache.
inline constexpr std::size_t kAheadElements = 1024;

// Flattened, as compilers leave what is called often out of line, vectors and all.
template <class Codes, class Rounder, class Scale, bool kFeedback, bool kStream>
HWY_FLATTEN void EncodeBlocks(const EncodeCall& call, std::size_t first, std::size_t last) {
  Rounder round(call);
  const std::size_t ahead = std::max<std::size_t>(1, kAheadElements / call.block);
  for (std::size_t begin = first; begin < last; begin += ahead) {
    const std::size_t end = begin + std::min(ahead, last - begin);
    for (std::size_t b = begin; b < end; ++b) {
      const std::size_t at = b * call.block;
      call.scales[b] = ScaleOf<Scale, kFeedback>(
          call.x + at, kFeedback ? call.residual + at : nullptr, std::min(call.block, call.n - at));
    }
    for (std::size_t b = begin; b < end; ++b) {
      if (HWY_UNLIKELY(IsTiny(call.scales[b]))) {
        EncodeTinyBlock<Codes, kFeedback, kStream>(call, b, round);
      } else {
        EncodeBlock<Codes, kFeedback, kStream, false>(call, b, round);
      }
    }
  }
  if (kStream) FlushStream();
}

// Whether codes are streamed past the caches.
template <class Codes>
bool Streams(const EncodeCall& call) {
  return OutgrowsCaches(Codes::Bytes(call.n)) && Codes::Bytes(call.block) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(call.codes) % 16 == 0;
}

template <class Codes, class Rounder, class Scale>
void Encode(const EncodeCall& call, std::size_t first, std::size_t last) {
  const bool stream = Streams<Codes>(call);
  if (call.residual != nullptr && stream)
    return EncodeBlocks<Codes, Rounder, Scale, true, true>(call, first, last);
  if (call.residual != nullptr)
    return EncodeBlocks<Codes, Rounder, Scale, true, false>(call, first, last);
  if (stream) return EncodeBlocks<Codes, Rounder, Scale, false, true>(call, first, last);
  EncodeBlocks<Codes, Rounder, Scale, false, false>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
