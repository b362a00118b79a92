#include "core/check.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "kernels/ref_small_float.h"

namespace slimgrad::kernels::ref {
namespace {

template <class Bits>
void Narrow(const SmallFloat& format, In from, std::span<Bits> to, Overflow overflow,
            std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Rounded rounded = ToSmallFloat(format, from[i], overflow == Overflow::kSaturate);
    to[i] = Bits{rounded.code};
    if (rounded.overflowed && overflowed != nullptr) ++*overflowed;
  }
}

template <class Bits>
void NarrowFeedback(const SmallFloat& format, In x, Out residual, std::span<Bits> to,
                    Overflow overflow, std::uint64_t* overflowed) {
  AddSaturated({}, x, residual);
  Narrow(format, residual, to, overflow, overflowed);
  for (std::size_t i = 0; i < to.size(); ++i)
    residual[i] = residual[i] - FromSmallFloat(format, static_cast<std::uint16_t>(to[i]));
}

template <class Bits>
void Decode(const SmallFloat& format, std::span<const Bits> from, float weight, bool add, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float product = weight * FromSmallFloat(format, static_cast<std::uint16_t>(from[i]));
    y[i] = (add ? y[i] : 0.0F) + product;
  }
}

}  // namespace

void F16DecodeAdd(const Backend&, std::span<const half_bits> from, float weight, Out y) {
  Decode(kHalf, from, weight, true, y);
}

void F16Decode(const Backend&, std::span<const half_bits> from, float weight, Out y) {
  Decode(kHalf, from, weight, false, y);
}

void BF16DecodeAdd(const Backend&, std::span<const bfloat16_bits> from, float weight, Out y) {
  Decode(kBrain, from, weight, true, y);
}

void BF16Decode(const Backend&, std::span<const bfloat16_bits> from, float weight, Out y) {
  Decode(kBrain, from, weight, false, y);
}

void F32ToF16Feedback(const Backend&, In x, Out residual, std::span<half_bits> to,
                      Overflow overflow, std::uint64_t* overflowed) {
  NarrowFeedback(kHalf, x, residual, to, overflow, overflowed);
}

void F32ToBF16Feedback(const Backend&, In x, Out residual, std::span<bfloat16_bits> to,
                       Overflow overflow, std::uint64_t* overflowed) {
  NarrowFeedback(kBrain, x, residual, to, overflow, overflowed);
}

void F32ToF16(const Backend&, In from, std::span<half_bits> to, Overflow overflow,
              std::uint64_t* overflowed) {
  Narrow(kHalf, from, to, overflow, overflowed);
}

void F32ToBF16(const Backend&, In from, std::span<bfloat16_bits> to, Overflow overflow,
               std::uint64_t* overflowed) {
  Narrow(kBrain, from, to, overflow, overflowed);
}

void F16ToF32(const Backend&, std::span<const half_bits> from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = FromSmallFloat(kHalf, static_cast<std::uint16_t>(from[i]));
}

void BF16ToF32(const Backend&, std::span<const bfloat16_bits> from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = FromSmallFloat(kBrain, static_cast<std::uint16_t>(from[i]));
}

void Copy(const Backend&, In from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

}  // namespace slimgrad::kernels::ref
