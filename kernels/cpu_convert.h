// Private to the cpu kernels of convert.h and float8.h: the cut of a conversion into ranges. Each
// is handed its format as the functions of one range (convert-inl.h) for the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "kernels/cpu_half.h"
#include "kernels/cpu_ranges.h"

namespace slimgrad::kernels::cpu {

// The codes after the largest finite ones of float8.h: what stands for infinity.
inline constexpr std::uint8_t kE4M3Infinity = 0x7F;
inline constexpr std::uint8_t kE5M2Infinity = 0x7C;

template <class Bits>
using NarrowFunction = std::uint64_t (*)(const float* in, std::size_t n, std::uint32_t largest,
                                         bool stream, Bits* out);
template <class Bits>
using FeedbackFunction = std::uint64_t (*)(const float* in, std::size_t n, std::uint32_t largest,
                                           float* residual, Bits* out);
template <class Bits>
using WidenFunction = void (*)(const Bits* in, std::size_t n, Then then, float weight, bool stream,
                               float* y);

template <class Bits>
void NarrowAll(const Backend& backend, In from, Bits* to, std::uint32_t largest,
               NarrowFunction<Bits> narrow, std::uint64_t* overflowed) {
  const bool stream = OutgrowsCaches(from.size() * sizeof(Bits));
  CountOver(backend, from.size(), overflowed, [&](std::size_t begin, std::size_t end) {
    return narrow(from.data() + begin, end - begin, largest, stream, to + begin);
  });
}

template <class Bits>
void FeedbackAll(const Backend& backend, In x, Out residual, Bits* to, std::uint32_t largest,
                 FeedbackFunction<Bits> feedback, std::uint64_t* overflowed) {
  CountOver(backend, x.size(), overflowed, [&](std::size_t begin, std::size_t end) {
    return feedback(x.data() + begin, end - begin, largest, residual.data() + begin, to + begin);
  });
}

template <class Bits>
void WidenAll(const Backend& backend, const Bits* from, Then then, float weight, Out y,
              WidenFunction<Bits> widen) {
  const bool stream = OutgrowsCaches(y.size_bytes());
  ForElements(backend, y.size(), [&](std::size_t begin, std::size_t end) {
    widen(from + begin, end - begin, then, weight, stream, y.data() + begin);
  });
}

}  // namespace slimgrad::kernels::cpu
