#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/combine.h"
#include "kernels/cpu_half.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/combine_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/half-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using Inputs = std::span<const std::span<const std::byte>>;

template <class D>
HWY_INLINE hn::Vec<D> LoadBytes(D d, const std::uint8_t* from) {
  return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), from));
}

template <bool kStream, class D>
HWY_INLINE void StoreBytes(hn::Vec<D> x, D, std::uint8_t* to) {
  const hn::Repartition<std::uint8_t, D> bytes;
  StoreAligned<kStream>(hn::BitCast(bytes, x), bytes, to);
}

// How groups of a float dtype are read and written, and single elements.
struct F32Vectors {
  using Bits = float;
  static constexpr std::uint32_t kOverflowsFrom = kF32Infinity;
  static float Value(float x) { return x; }
  static float Code(float x) { return x; }
  static HWY_INLINE void Load(const std::uint8_t* from, VF (&x)[kGroupVectors]) {
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR { x[v] = LoadBytes(kF32, from + v * sizeof(VF)); });
  }
  template <bool kStream>
  static HWY_INLINE void Store(const VF (&x)[kGroupVectors], std::uint8_t* to) {
    Unroll<kGroupVectors>([&](auto v)
                              HWY_ATTR { StoreBytes<kStream>(x[v], kF32, to + v * sizeof(VF)); });
  }
};
template <class Format>
struct HalfVectors {
  using Bits = std::uint16_t;
  static constexpr std::uint32_t kOverflowsFrom = Format::kOverflowsFrom;
  static float Value(Bits code) { return Format::Value(code); }
  static Bits Code(float x) {
    return Format::Code(x, LargestCode(Format::kInfinity, Overflow::kSaturate));
  }
  static HWY_INLINE void Load(const std::uint8_t* from, VF (&x)[kGroupVectors]) {
    Unroll<kGroupVectors / 2>([&](auto v) HWY_ATTR {
      Format::Widen(LoadBytes(kU16, from + v * sizeof(VU16)), x[2 * v], x[2 * v + 1]);
    });
  }
  // Of values that do not overflow.
  template <bool kStream>
  static HWY_INLINE void Store(const VF (&x)[kGroupVectors], std::uint8_t* to) {
    Unroll<kGroupVectors / 2>([&](auto v) HWY_ATTR {
      StoreBytes<kStream>(Format::Narrow(x[2 * v], x[2 * v + 1]), kU16, to + v * sizeof(VU16));
    });
  }
};

// The mean of element i, whatever it is. Payload memory is bytes: any alignment.
template <class Format>
HWY_NOINLINE float CarefulMean(Inputs inputs, std::size_t i) {
  const auto element = [&](std::size_t r) {
    typename Format::Bits bits;
    std::memcpy(&bits, inputs[r].data() + i * sizeof(bits), sizeof(bits));
    return Format::Value(bits);
  };
  float sum = element(0);
  double wide = sum;
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    sum += element(r);
    wide += element(r);
  }
  if (std::isfinite(sum)) return sum / static_cast<float>(inputs.size());
  const double mean = wide / static_cast<double>(inputs.size());
  return std::isnan(mean) ? std::numeric_limits<float>::quiet_NaN() : SaturateToFloat(mean);
}

template <class Format>
struct Mean {
  using T = typename Format::Bits;
  static constexpr std::size_t kVectors = kGroupVectors;
  using V = VF;

  static HWY_INLINE void Load(const std::uint8_t* from, VF (&x)[kVectors]) {
    Format::Load(from, x);
  }
  static HWY_INLINE VF Fold(VF a, VF b) { return a + b; }
  // False where a sum, and so its quotient, is not finite; or where a quotient overflows: the
  // rounding of many sums may leave it beyond every input.
  static HWY_INLINE bool Finish(std::size_t inputs, VF (&x)[kVectors]) {
    const VF divisor = hn::Set(kF32, static_cast<float>(inputs));
    VU top = hn::Zero(kU32);
    Unroll<kVectors>([&](auto v) HWY_ATTR {
      x[v] = x[v] / divisor;
      top = MaxMagnitude(top, Magnitude(x[v]));
    });
    return !AnyAtLeast(top, Format::kOverflowsFrom);
  }
  template <bool kStream>
  static HWY_INLINE void Store(const VF (&x)[kVectors], std::uint8_t* to) {
    Format::template Store<kStream>(x, to);
  }
  static T One(Inputs inputs, std::size_t i) {
    return Format::Code(CarefulMean<Format>(inputs, i));
  }
};

struct SumOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};
struct MaxOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Lt(a, b), b, a);  // a, if they are equal
  }
};

// The inputs folded in rank order.
template <class Value, class FoldTwo>
struct Folded {
  using T = Value;
  using D = hn::ScalableTag<T>;
  static constexpr std::size_t kVectors = kGroup / hn::MaxLanes(D());
  using V = hn::Vec<D>;

  static HWY_INLINE void Load(const std::uint8_t* from, V (&x)[kVectors]) {
    Unroll<kVectors>([&](auto v) HWY_ATTR { x[v] = LoadBytes(D(), from + v * sizeof(V)); });
  }
  static HWY_INLINE V Fold(V a, V b) { return FoldTwo()(a, b); }
  static HWY_INLINE bool Finish(std::size_t, V (&)[kVectors]) { return true; }
  template <bool kStream>
  static HWY_INLINE void Store(const V (&x)[kVectors], std::uint8_t* to) {
    Unroll<kVectors>([&](auto v) HWY_ATTR { StoreBytes<kStream>(x[v], D(), to + v * sizeof(V)); });
  }
  static T One(Inputs, std::size_t) { return 0; }  // every group finishes
};

// Elements at ... at + count - 1; a whole group, or fewer through padded copies. Inputs are read
// before the output is written, which may be one of them.
template <class Kind, bool kWhole, bool kStream>
HWY_INLINE void CombineGroup(Inputs inputs, std::size_t at, std::size_t count, std::uint8_t* to) {
  using T = typename Kind::T;
  Padded<T> part;
  const auto load = [&](std::size_t r, typename Kind::V(&x)[Kind::kVectors]) HWY_ATTR {
    const std::byte* from = inputs[r].data() + at * sizeof(T);
    if constexpr (!kWhole) std::memcpy(part.at, from, count * sizeof(T));
    Kind::Load(kWhole ? reinterpret_cast<const std::uint8_t*>(from)
                      : reinterpret_cast<const std::uint8_t*>(part.at),
               x);
  };
  typename Kind::V folded[Kind::kVectors];
  load(0, folded);
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    typename Kind::V x[Kind::kVectors];
    load(r, x);
    Unroll<Kind::kVectors>([&](auto v) HWY_ATTR { folded[v] = Kind::Fold(folded[v], x[v]); });
  }
  if (HWY_UNLIKELY(!Kind::Finish(inputs.size(), folded))) {
    for (std::size_t i = 0; i < count; ++i) part.at[i] = Kind::One(inputs, at + i);
    std::memcpy(to, part.at, count * sizeof(T));
  } else if constexpr (kWhole) {
    Kind::template Store<kStream>(folded, to);
  } else {
    Kind::template Store<false>(folded, reinterpret_cast<std::uint8_t*>(part.at));
    std::memcpy(to, part.at, count * sizeof(T));
  }
}

template <class Kind, bool kStream>
HWY_INLINE void CombineElements(Inputs inputs, std::size_t begin, std::size_t end,
                                std::uint8_t* to) {
  constexpr std::size_t kSize = sizeof(typename Kind::T);
  std::size_t i = begin;
  if (kStream) i += BeforeLine(to + begin * kSize, (end - begin) * kSize) / kSize;
  if (i > begin) CombineGroup<Kind, false, false>(inputs, begin, i - begin, to + begin * kSize);
  for (; end - i >= kGroup; i += kGroup)
    CombineGroup<Kind, true, kStream>(inputs, i, kGroup, to + i * kSize);
  if (i < end) CombineGroup<Kind, false, false>(inputs, i, end - i, to + i * kSize);
  if (kStream) FlushStream();
}

template <class Kind>
HWY_INLINE void CombineAs(Inputs inputs, std::size_t begin, std::size_t end, bool stream,
                          std::uint8_t* to) {
  stream ? CombineElements<Kind, true>(inputs, begin, end, to)
         : CombineElements<Kind, false>(inputs, begin, end, to);
}

void CombineRange(CombineOp op, DType dtype, Inputs inputs, std::size_t begin, std::size_t end,
                  bool stream, std::uint8_t* to) {
  switch (dtype) {
    case DType::kF32:
      if (op == CombineOp::kMean)
        return CombineAs<Mean<F32Vectors>>(inputs, begin, end, stream, to);
      return CombineAs<Folded<float, MaxOf>>(inputs, begin, end, stream, to);
    case DType::kF16: return CombineAs<Mean<HalfVectors<F16>>>(inputs, begin, end, stream, to);
    case DType::kBF16: return CombineAs<Mean<HalfVectors<BF16>>>(inputs, begin, end, stream, to);
    case DType::kI32:  // as unsigned: wraps
      return CombineAs<Folded<std::uint32_t, SumOf>>(inputs, begin, end, stream, to);
    case DType::kU64:
      return CombineAs<Folded<std::uint64_t, SumOf>>(inputs, begin, end, stream, to);
    default: return CombineAs<Folded<std::uint8_t, MaxOf>>(inputs, begin, end, stream, to);
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(CombineRange);

}  // namespace

void Combine(const Backend& backend, CombineOp op, DType dtype,
             std::span<const std::span<const std::byte>> inputs, std::span<std::byte> to) {
  // A line is never reached by whole elements where these are not aligned; and what was just read
  // is in the caches.
  const bool aligned = reinterpret_cast<std::uintptr_t>(to.data()) % SizeOf(dtype) == 0;
  const bool stream = OutgrowsCaches(to.size()) && aligned && to.data() != inputs[0].data();
  const auto combine = HWY_DYNAMIC_DISPATCH(CombineRange);
  ForElements(backend, to.size() / SizeOf(dtype), [&](std::size_t begin, std::size_t end) {
    combine(op, dtype, inputs, begin, end, stream, reinterpret_cast<std::uint8_t*>(to.data()));
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
