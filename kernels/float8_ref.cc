// By search among the values that codes stand for, which the specification's formulas give.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "kernels/elementwise.h"
#include "kernels/float8.h"

namespace slimgrad::kernels::ref {
namespace {

// values[c] is what code c stands for by the formulas alone, as if no code were special; of them,
// those up to `largest` are numbers.
struct Table {
  Table(unsigned fraction_bits, int bias, std::uint8_t largest_code, bool infinity,
        std::uint8_t nan_code)
      : largest(largest_code), has_infinity(infinity), nan(nan_code) {
    for (unsigned code = 0; code < values.size(); ++code) {
      const unsigned exponent = code >> fraction_bits;
      const double fraction =
          std::ldexp(code % (1U << fraction_bits), -static_cast<int>(fraction_bits));
      values[code] = exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                   : std::ldexp(1 + fraction, static_cast<int>(exponent) - bias);
    }
  }

  std::array<double, 128> values;
  std::uint8_t largest;
  bool has_infinity;  // as the next code
  std::uint8_t nan;
};

const Table& TableOf(Float8 format) {
  static const Table e4m3(3, 7, 0x7E, false, 0x7F);
  static const Table e5m2(2, 15, 0x7B, true, 0x7E);
  return format == Float8::kE4M3 ? e4m3 : e5m2;
}

// The nearest code of a finite magnitude; the even one of two that are equally near. Beyond the
// largest number, what would come next counts too.
unsigned Nearest(const Table& table, double magnitude) {
  const auto next = table.values.begin() + table.largest + 1;
  const auto above = static_cast<unsigned>(std::lower_bound(table.values.begin(), next, magnitude) -
                                           table.values.begin());
  if (above == 0) return 0;
  const double to_above = table.values[above] - magnitude;
  const double to_below = magnitude - table.values[above - 1];
  if (to_above == to_below) return above % 2 == 0 ? above : above - 1;
  return to_above < to_below ? above : above - 1;
}

struct Encoded {
  std::uint8_t code;
  bool overflowed;
};

Encoded Encode(const Table& table, float value, Overflow overflow) {
  const unsigned sign = std::signbit(value) ? 0x80 : 0;
  const auto with_sign = [&](unsigned code) { return static_cast<std::uint8_t>(sign | code); };
  const unsigned infinity = table.has_infinity ? table.largest + 1U : table.nan;
  if (std::isnan(value)) return {with_sign(table.nan), false};
  if (std::isinf(value)) return {with_sign(infinity), false};
  const unsigned code = Nearest(table, std::fabs(static_cast<double>(value)));
  if (code <= table.largest) return {with_sign(code), false};
  return {with_sign(overflow == Overflow::kSaturate ? table.largest : infinity), true};
}

float Value(const Table& table, std::uint8_t code) {
  const unsigned magnitude = code & 0x7FU;
  float value = static_cast<float>(table.values[magnitude]);
  if (magnitude > table.largest)
    value = table.has_infinity && magnitude == table.largest + 1U
                ? std::numeric_limits<float>::infinity()
                : std::numeric_limits<float>::quiet_NaN();
  return std::copysign(value, (code & 0x80U) != 0 ? -1.0F : 1.0F);
}

void Decode(Float8 format, std::span<const std::uint8_t> from, float weight, bool add, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float product = weight * Value(TableOf(format), from[i]);
    y[i] = (add ? y[i] : 0.0F) + product;
  }
}

}  // namespace

void F32ToF8(const Backend&, Float8 format, In from, std::span<std::uint8_t> to, Overflow overflow,
             std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Encoded encoded = Encode(TableOf(format), from[i], overflow);
    to[i] = encoded.code;
    if (encoded.overflowed && overflowed != nullptr) ++*overflowed;
  }
}

void F32ToF8Feedback(const Backend& backend, Float8 format, In x, Out residual,
                     std::span<std::uint8_t> to, Overflow overflow, std::uint64_t* overflowed) {
  AddSaturated(backend, x, residual);
  ref::F32ToF8(backend, format, residual, to, overflow, overflowed);
  for (std::size_t i = 0; i < to.size(); ++i)
    residual[i] = residual[i] - Value(TableOf(format), to[i]);
}

void F8ToF32(const Backend&, Float8 format, std::span<const std::uint8_t> from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = Value(TableOf(format), from[i]);
}

void F8Decode(const Backend&, Float8 format, std::span<const std::uint8_t> from, float weight,
              Out y) {
  Decode(format, from, weight, false, y);
}

void F8DecodeAdd(const Backend&, Float8 format, std::span<const std::uint8_t> from, float weight,
                 Out y) {
  Decode(format, from, weight, true, y);
}

}  // namespace slimgrad::kernels::ref
