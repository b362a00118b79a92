#include <algorithm>
#include <cstring>

#include "kernels/cpu_half.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

template <bool kStream>
HWY_INLINE void FillWith(float value, std::size_t n, float* y) {
  std::size_t i = kStream ? BeforeLine(y, n) : 0;
  std::fill(y, y + i, value);
  for (; n - i >= kLanes; i += kLanes) StoreAligned<kStream>(hn::Set(kF32, value), kF32, y + i);
  std::fill(y + i, y + n, value);
  if (kStream) FlushStream();
}

void FillRange(float value, std::size_t n, bool stream, float* y) {
  stream ? FillWith<true>(value, n, y) : FillWith<false>(value, n, y);
}

void AddScaledRange(const float* HWY_RESTRICT x, std::size_t n, float weight,
                    float* HWY_RESTRICT y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = y[i] + weight * x[i];
}

void AddSaturatedRange(const float* HWY_RESTRICT x, std::size_t n, float* HWY_RESTRICT y) {
  std::size_t i = 0;
  for (; n - i >= kGroup; i += kGroup) AddSaturatedGroup(x + i, y + i);
  for (; i < n; ++i) y[i] = SaturatedSum(y[i], x[i]);
}

template <class Word>
std::uint64_t CountOneByOne(const Word* x, std::size_t n, Word exponent) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Word word;  // what lies there may be of another type
    std::memcpy(&word, x + i, sizeof(word));
    count += static_cast<std::uint64_t>((word & exponent) == exponent);
  }
  return count;
}

// How many words have all bits of the exponent set. A maximum says first whether any has: in a
// gradient that can be used, none.
template <class Word>
HWY_INLINE std::uint64_t CountExponents(const Word* x, std::size_t n, Word exponent) {
  constexpr std::size_t kPart = 1024;
  const hn::ScalableTag<Word> d;
  const hn::RebindToSigned<decltype(d)> signs;
  const auto magnitude = hn::Set(d, static_cast<Word>(Word(~Word{0}) >> 1));
  const auto below = hn::BitCast(signs, hn::Set(d, static_cast<Word>(exponent - 1)));
  std::uint64_t count = 0;
  std::size_t i = 0;
  for (; n - i >= kPart; i += kPart) {
    auto top = hn::Zero(d);
    for (std::size_t j = 0; j < kPart; j += hn::MaxLanes(d))
      top = hn::Max(top, hn::And(hn::LoadU(d, x + i + j), magnitude));
    if (HWY_UNLIKELY(!hn::AllFalse(signs, hn::Gt(hn::BitCast(signs, top), below))))
      count += CountOneByOne(x + i, kPart, exponent);
  }
  return count + CountOneByOne(x + i, n - i, exponent);
}

std::uint64_t CountExponents32(const std::uint32_t* x, std::size_t n, std::uint32_t exponent) {
  return CountExponents(x, n, exponent);
}

std::uint64_t CountExponents16(const std::uint16_t* x, std::size_t n, std::uint16_t exponent) {
  return CountExponents(x, n, exponent);
}

HWY_INLINE std::uint64_t CountQuotients(const float* y, std::size_t n) {
  return CountOneByOne(reinterpret_cast<const std::uint32_t*>(y), n, kF32Infinity);
}

std::uint64_t DivideRange(float divisor, std::size_t n, float* y) {
  const VF by = hn::Set(kF32, divisor);
  std::uint64_t count = 0;
  std::size_t i = 0;
  for (; n - i >= kGroup; i += kGroup) {
    VU top = hn::Zero(kU32);
    Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
      const VF quotient = hn::LoadU(kF32, y + i + v * kLanes) / by;
      hn::StoreU(quotient, kF32, y + i + v * kLanes);
      top = MaxMagnitude(top, Magnitude(quotient));
    });
    if (HWY_UNLIKELY(AnyAtLeast(top, kF32Infinity))) count += CountQuotients(y + i, kGroup);
  }
  for (std::size_t j = i; j < n; ++j) y[j] = y[j] / divisor;
  return count + CountQuotients(y + i, n - i);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(FillRange);
HWY_EXPORT(AddScaledRange);
HWY_EXPORT(AddSaturatedRange);
HWY_EXPORT(DivideRange);
HWY_EXPORT(CountExponents32);
HWY_EXPORT(CountExponents16);

// Elements are read as integers: no fp operation can trap, quiet or flush.
template <class Word, class Count>
void CountIn(const Backend& backend, const ConstView& x, Word exponent, Count count,
             std::uint64_t* total) {
  const auto* words = static_cast<const Word*>(x.data);
  CountOver(backend, x.numel, total, [&](std::size_t begin, std::size_t end) {
    return count(words + begin, end - begin, exponent);
  });
}

}  // namespace

void CopyBytes(const Backend&, std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

void Fill(const Backend& backend, float value, Out y) {
  const auto fill = HWY_DYNAMIC_DISPATCH(FillRange);
  const bool stream = OutgrowsCaches(y.size_bytes());
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    fill(value, end - begin, stream, y.data() + begin);
  });
}

void AddScaled(const Backend& backend, In x, float weight, Out y) {
  const auto add = HWY_DYNAMIC_DISPATCH(AddScaledRange);
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    add(x.data() + begin, end - begin, weight, y.data() + begin);
  });
}

void AddSaturated(const Backend& backend, In x, Out y) {
  const auto add = HWY_DYNAMIC_DISPATCH(AddSaturatedRange);
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    add(x.data() + begin, end - begin, y.data() + begin);
  });
}

void Divide(const Backend& backend, float divisor, Out y, std::uint64_t* non_finite) {
  const auto divide = HWY_DYNAMIC_DISPATCH(DivideRange);
  *non_finite = 0;
  CountOver(backend, y.size(), non_finite, [&](std::size_t begin, std::size_t end) {
    return divide(divisor, end - begin, y.data() + begin);
  });
}

void CountNonFinite(const Backend& backend, const ConstView& x, std::uint64_t* count) {
  const auto count32 = HWY_DYNAMIC_DISPATCH(CountExponents32);
  const auto count16 = HWY_DYNAMIC_DISPATCH(CountExponents16);
  *count = 0;
  switch (x.dtype) {
    case DType::kF32: return CountIn<std::uint32_t>(backend, x, kF32Infinity, count32, count);
    case DType::kF16: return CountIn<std::uint16_t>(backend, x, kF16Infinity, count16, count);
    default: return CountIn<std::uint16_t>(backend, x, kBF16Infinity, count16, count);
  }
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
