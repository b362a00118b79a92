#include <atomic>
#include <cstring>

#include "core/check.h"
#include "kernels/convert.h"
#include "kernels/cpu_half.h"
#include "kernels/cpu_ranges.h"

namespace slimgrad::kernels::cpu {
namespace {

// to[i] = code(from[i]); returns how many finite values are at least `overflows_from`.
template <class Bits, class Code>
std::uint64_t NarrowAll(const Backend& backend, In from, std::span<Bits> to,
                        std::uint32_t overflows_from, Code code) {
  SLIMGRAD_CHECK(from.size() == to.size());
  std::atomic<std::uint64_t> overflowed = 0;
  ForElements(backend, from.size(), [&](std::size_t begin, std::size_t end) {
    const float* __restrict in = from.data();
    Bits* __restrict out = to.data();
    std::uint32_t count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      out[i] = static_cast<Bits>(code(in[i]));
      count += Overflows(in[i], overflows_from);
    }
    overflowed.fetch_add(count, std::memory_order_relaxed);
  });
  return overflowed;
}

template <class Bits, class Value>
void WidenAll(const Backend& backend, std::span<const Bits> from, Out to, Value value) {
  SLIMGRAD_CHECK(from.size() == to.size());
  ForElements(backend, from.size(), [&](std::size_t begin, std::size_t end) {
    const Bits* __restrict in = from.data();
    float* __restrict out = to.data();
    for (std::size_t i = begin; i < end; ++i) out[i] = value(static_cast<std::uint16_t>(in[i]));
  });
}

}  // namespace

std::uint64_t F32ToF16(const Backend& backend, In from, std::span<half_bits> to,
                       Overflow overflow) {
  const std::uint32_t largest = LargestCode(0x7C00, overflow);
  return NarrowAll(backend, from, to, kF16OverflowsFrom,
                   [=](float x) { return F16Code(x, largest); });
}

std::uint64_t F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to,
                        Overflow overflow) {
  const std::uint32_t largest = LargestCode(0x7F80, overflow);
  return NarrowAll(backend, from, to, kBF16OverflowsFrom,
                   [=](float x) { return BF16Code(x, largest); });
}

void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to) {
  WidenAll(backend, from, to, [](std::uint16_t code) { return FromF16(code); });
}

void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to) {
  WidenAll(backend, from, to, [](std::uint16_t code) { return FromBF16(code); });
}

void Copy(const Backend& backend, In from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  ForElements(backend, from.size(), [&](std::size_t begin, std::size_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(float));
  });
}

}  // namespace slimgrad::kernels::cpu
