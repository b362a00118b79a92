// Private to the cpu kernels of convert.h and float8.h: how groups make up a range. Compiled once
// for each instruction set, as simd-inl.h is.
//
// `Groups` is a format by groups of 64 elements: `Bits`, the type of its codes, and
//
//   template <bool kStream>
//   std::uint32_t Narrow(const float* in, std::uint32_t largest, Bits* out);
//   std::uint32_t Feedback(const float* in, std::uint32_t largest, float* residual, Bits* out);
//   template <Then kThen, bool kStream>
//   void Widen(const Bits* in, float weight, float* y);
//
// `largest` is what cpu_half.h's LargestCode gives; what is returned, how many values overflowed.
#if defined(SLIMGRAD_KERNELS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_CONVERT_INL_H_
#undef SLIMGRAD_KERNELS_CONVERT_INL_H_
#else
#define SLIMGRAD_KERNELS_CONVERT_INL_H_
#endif

#include "kernels/cpu_half.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

template <class Groups, class Bits = typename Groups::Bits>
std::uint32_t NarrowPart(const float* in, std::size_t count, std::uint32_t largest, Bits* out) {
  const Padded<float> values(in, count);
  Padded<Bits> codes;
  const std::uint32_t overflowed = Groups::template Narrow<false>(values.at, largest, codes.at);
  codes.CopyTo(out, count);
  return overflowed;
}

template <class Groups, bool kStream, class Bits = typename Groups::Bits>
std::uint64_t NarrowRange(const float* in, std::size_t n, std::uint32_t largest, Bits* out) {
  std::size_t i = kStream ? BeforeLine(out, n) : 0;
  std::uint64_t overflowed = i > 0 ? NarrowPart<Groups>(in, i, largest, out) : 0;
  for (; n - i >= kGroup; i += kGroup)
    overflowed += Groups::template Narrow<kStream>(in + i, largest, out + i);
  if (i < n) overflowed += NarrowPart<Groups>(in + i, n - i, largest, out + i);
  if (kStream) FlushStream();
  return overflowed;
}

template <class Groups, class Bits = typename Groups::Bits>
std::uint64_t NarrowRange(const float* in, std::size_t n, std::uint32_t largest, bool stream,
                          Bits* out) {
  return stream ? NarrowRange<Groups, true>(in, n, largest, out)
                : NarrowRange<Groups, false>(in, n, largest, out);
}

template <class Groups, class Bits = typename Groups::Bits>
std::uint64_t FeedbackRange(const float* in, std::size_t n, std::uint32_t largest, float* residual,
                            Bits* out) {
  std::uint64_t overflowed = 0;
  std::size_t i = 0;
  for (; n - i >= kGroup; i += kGroup)
    overflowed += Groups::Feedback(in + i, largest, residual + i, out + i);
  if (i == n) return overflowed;
  const Padded<float> values(in + i, n - i);
  Padded<float> rest(residual + i, n - i);
  Padded<Bits> codes;
  overflowed += Groups::Feedback(values.at, largest, rest.at, codes.at);
  rest.CopyTo(residual + i, n - i);
  codes.CopyTo(out + i, n - i);
  return overflowed;
}

template <Then kThen, bool kStream>
HWY_INLINE void StoreWide(VF value, float weight, float* HWY_RESTRICT y) {
  if constexpr (kThen == Then::kStore) {
    StoreAligned<kStream>(value, kF32, y);
  } else if constexpr (kThen == Then::kScale) {
    StoreAligned<kStream>(hn::Zero(kF32) + hn::Set(kF32, weight) * value, kF32, y);
  } else {
    hn::StoreU(hn::LoadU(kF32, y) + hn::Set(kF32, weight) * value, kF32, y);
  }
}

template <class Groups, Then kThen, class Bits = typename Groups::Bits>
void WidenPart(const Bits* in, std::size_t count, float weight, float* y) {
  const Padded<Bits> codes(in, count);
  Padded<float> values(y, count);
  Groups::template Widen<kThen, false>(codes.at, weight, values.at);
  values.CopyTo(y, count);
}

template <class Groups, Then kThen, bool kStream, class Bits = typename Groups::Bits>
void WidenRange(const Bits* in, std::size_t n, float weight, float* y) {
  std::size_t i = kStream ? BeforeLine(y, n) : 0;
  if (i > 0) WidenPart<Groups, kThen>(in, i, weight, y);
  for (; n - i >= kGroup; i += kGroup)
    Groups::template Widen<kThen, kStream>(in + i, weight, y + i);
  if (i < n) WidenPart<Groups, kThen>(in + i, n - i, weight, y + i);
  if (kStream) FlushStream();
}

template <class Groups, class Bits = typename Groups::Bits>
void WidenRange(const Bits* in, std::size_t n, Then then, float weight, bool stream, float* y) {
  if (then == Then::kAdd) return WidenRange<Groups, Then::kAdd, false>(in, n, weight, y);
  if (then == Then::kScale) {
    return stream ? WidenRange<Groups, Then::kScale, true>(in, n, weight, y)
                  : WidenRange<Groups, Then::kScale, false>(in, n, weight, y);
  }
  return stream ? WidenRange<Groups, Then::kStore, true>(in, n, weight, y)
                : WidenRange<Groups, Then::kStore, false>(in, n, weight, y);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
