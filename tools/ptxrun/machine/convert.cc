// cvt: between integers, floats, 16-bit floats and pairs of fp8.
#include <algorithm>
#include <cmath>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/small_float.h"
#include "tools/ptxrun/machine/values.h"

namespace ptx {
namespace {

double Rectified(const Instruction& i, double x) {
  return i.relu && !std::isnan(x) && !(x > 0) ? 0.0 : x;
}

// .satfinite: the greatest finite value instead of infinity
double Finite(const Instruction& i, double x) {
  if (!i.satfinite || std::isnan(x)) return x;
  const bool is_half = i.type == Type::kF16 || i.type == Type::kF16x2;
  const double largest = is_half ? 65504.0 : std::ldexp(255.0, 120);
  return std::min(largest, std::max(-largest, x));
}

u64 ToFp8Pair(const Instruction& i, u64 a, u64 b) {
  const bool from_pair = i.type2 == Type::kF16x2;
  const double high = from_pair ? FromHalf(static_cast<u16>(a >> 16)) : FloatOf(a);
  const double low = from_pair ? FromHalf(static_cast<u16>(a)) : FloatOf(b);
  const auto code = [&](double x) {
    return i.type == Type::kE4m3x2 ? ToE4m3(Rectified(i, x)) : ToE5m2(Rectified(i, x));
  };
  return u64{code(high)} << 8 | code(low);
}

u64 FromFp8Pair(const Instruction& i, u64 pair) {
  const auto half = [&](u64 code) -> u64 {
    const double value = i.type2 == Type::kE4m3x2
                             ? FromE4m3(static_cast<u8>(code))
                             // e5m2 is the upper half of a half
                             : FromHalf(static_cast<u16>(static_cast<u8>(code) << 8));
    return ToHalf(Rectified(i, value), Rounding::kNearest);
  };
  return half(pair & 255) | half(pair >> 8 & 255) << 16;
}

u64 ToHalfPair(const Instruction& i, u64 a, u64 b) {
  const auto lane = [&](u64 bits) -> u64 {
    const double value = Finite(i, Rectified(i, FloatOf(bits)));
    return i.type == Type::kF16x2 ? ToHalf(value, i.rounding) : ToBf16(value, i.rounding);
  };
  return lane(a) << 16 | lane(b);
}

double SourceFloat(const Instruction& i, u64 bits) {
  switch (i.type2) {
    case Type::kF32: return i.ftz ? FlushSubnormal(FloatOf(bits)) : FloatOf(bits);
    case Type::kF64: return DoubleOf(bits);
    case Type::kF16: return FromHalf(static_cast<u16>(bits));
    default: return FromBf16(static_cast<u16>(bits));
  }
}

// What is out of range becomes the nearest bound. A NaN becomes 0, or the least integer where
// either side has 64 bits.
u64 FloatToInteger(const Instruction& i, double x) {
  const bool is_signed = IsSigned(i.type);
  const unsigned width = Bits(i.type);
  const u64 sign_bit = ByteMask(Bytes(i.type)) / 2 + 1;
  if (std::isnan(x)) {
    if (i.type2 != Type::kF64 && width != 64) return 0;
    return is_signed ? static_cast<u64>(SignExtend(sign_bit, i.type)) : sign_bit;
  }
  x = ToInteger(x, i.rounding);
  const double least = is_signed ? -std::ldexp(1, static_cast<int>(width) - 1) : 0;
  const double above = std::ldexp(1, static_cast<int>(width) - (is_signed ? 1 : 0));
  if (x <= least) return is_signed ? static_cast<u64>(static_cast<i64>(least)) : 0;
  if (x >= above) return is_signed ? sign_bit - 1 : ByteMask(Bytes(i.type));
  return is_signed ? static_cast<u64>(static_cast<i64>(x)) : static_cast<u64>(x);
}

u64 FloatToFloat(const Instruction& i, double x) {
  const bool same_type = i.type == i.type2;
  if (same_type && i.rounding != Rounding::kNearest) x = ToInteger(x, i.rounding);
  if (i.sat) x = std::isnan(x) ? 0 : std::min(1.0, std::max(0.0, x));
  x = Finite(i, Rectified(i, x));
  switch (i.type) {
    case Type::kF64: return BitsOf(x);
    case Type::kF16: return ToHalf(x, i.rounding);
    case Type::kBf16: return ToBf16(x, i.rounding);
    default: break;
  }
  const RoundingScope rounding(same_type ? Rounding::kNearest : i.rounding);
  const volatile double unrounded = x;
  float result = static_cast<float>(unrounded);
  if (i.ftz) result = FlushSubnormal(result);
  return std::isnan(result) && i.type2 != Type::kF32 ? kNanF32 : BitsOf(result);
}

u64 IntegerToFloat(const Instruction& i, u64 bits) {
  const bool is_signed = IsSigned(i.type2);
  const RoundingScope rounding(i.rounding);
  const volatile i64 x = IntegerOf(bits, i.type2);
  const volatile u64 unsigned_x = static_cast<u64>(x);
  if (i.type == Type::kF32)
    return BitsOf(is_signed ? static_cast<float>(x) : static_cast<float>(unsigned_x));
  const double result = is_signed ? static_cast<double>(x) : static_cast<double>(unsigned_x);
  if (i.type == Type::kF64) return BitsOf(result);
  return i.type == Type::kF16 ? ToHalf(result, i.rounding) : ToBf16(result, i.rounding);
}

i64 SaturatedInteger(const Instruction& i, i64 x) {
  const bool from_signed = IsSigned(i.type2);
  if (IsSigned(i.type)) {
    const i64 largest = static_cast<i64>((u64{1} << (Bits(i.type) - 1)) - 1);
    if (!from_signed && static_cast<u64>(x) > static_cast<u64>(largest)) return largest;
    return std::clamp<i64>(x, -largest - 1, largest);
  }
  if (from_signed && x < 0) return 0;
  return static_cast<i64>(std::min(static_cast<u64>(x), ByteMask(Bytes(i.type))));
}

u64 IntegerToInteger(const Instruction& i, u64 bits) {
  i64 x = IntegerOf(bits, i.type2);
  if (i.sat) x = SaturatedInteger(i, x);
  return static_cast<u64>(IntegerOf(static_cast<u64>(x), i.type));
}

}  // namespace

u64 Convert(const Instruction& i, u64 a, u64 b) {
  if (IsFp8Pair(i.type)) return ToFp8Pair(i, a, b);
  if (IsFp8Pair(i.type2)) return FromFp8Pair(i, a);
  if (IsHalfPair(i.type)) return ToHalfPair(i, a, b);
  if (IsFloat(i.type2)) {
    const double x = SourceFloat(i, a);
    return IsFloat(i.type) ? FloatToFloat(i, x) : FloatToInteger(i, x);
  }
  return IsFloat(i.type) ? IntegerToFloat(i, a) : IntegerToInteger(i, a);
}

}  // namespace ptx
