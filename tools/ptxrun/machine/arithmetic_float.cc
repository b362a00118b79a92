// Float arithmetic of all widths. Everything is compiled with -frounding-math, and volatile keeps
// operations between the changes of the rounding mode.
#include <algorithm>
#include <cmath>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/small_float.h"
#include "tools/ptxrun/machine/values.h"

namespace ptx {
namespace {

template <class F>
F Transcendental(Op op, F a) {
  switch (op) {
    case Op::kRsqrt: return F{1} / std::sqrt(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kLg2: return std::log2(a);
    case Op::kEx2: return std::exp2(a);
    case Op::kTanh: return std::tanh(a);
    default: throw Error("float op");
  }
}

template <class F>
F Compute(Op op, F in_a, F in_b, F in_c) {
  volatile F a = in_a, b = in_b, c = in_c;
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kFma:
    case Op::kMad: return std::fma(F{a}, F{b}, F{c});
    case Op::kDiv: return a / b;
    case Op::kNeg: return -a;
    case Op::kAbs: return std::fabs(F{a});
    case Op::kMin: return Minimum(F{a}, F{b});
    case Op::kMax: return Maximum(F{a}, F{b});
    case Op::kRcp: return F{1} / a;
    case Op::kSqrt: return std::sqrt(F{a});
    case Op::kCopysign: return std::copysign(F{b}, F{a});
    default: return Transcendental(op, F{a});
  }
}

bool MakesNan(const Instruction& i, Op op, double x, double y) {
  return (op == Op::kMin || op == Op::kMax) && i.nan_wins && (std::isnan(x) || std::isnan(y));
}

template <class F>
F Saturated(F x) {
  return std::isnan(x) ? F{0} : std::min(F{1}, std::max(F{0}, x));
}

// What only moves or flips the sign keeps a NaN's bits.
bool KeepsNan(Op op) { return op == Op::kNeg || op == Op::kAbs || op == Op::kCopysign; }

u64 Single(const Instruction& i, Op op, u64 a, u64 b, u64 c) {
  const RoundingScope rounding(i.rounding);
  float x = FloatOf(a), y = FloatOf(b), z = FloatOf(c);
  if (i.ftz) {
    x = FlushSubnormal(x);
    y = FlushSubnormal(y);
    z = FlushSubnormal(z);
  }
  float result = Compute<float>(op, x, y, z);
  if (i.ftz) result = FlushSubnormal(result);
  if (MakesNan(i, op, x, y)) result = NAN;
  if (i.sat) result = Saturated(result);
  if (i.relu) result = result > 0 ? result : 0;
  if (std::isnan(result) && !KeepsNan(op)) return kNanF32;
  return BitsOf(result);
}

// Exact, or rounded to odd: the result is rounded once, into 16 bits. (A product of two 16-bit
// floats fits in a double. min.NaN and the functions are as good as the double's.)
double HalfInDouble(const Instruction& i, Op op, double x, double y, double z) {
  switch (op) {
    case Op::kAdd: return SumToOdd(x, y);
    case Op::kSub: return SumToOdd(x, -y);
    case Op::kMul: return x * y;
    case Op::kFma:
    case Op::kMad: return SumToOdd(x * y, z);
    case Op::kMin:
    case Op::kMax:
      if (MakesNan(i, op, x, y)) return NAN;
      [[fallthrough]];
    case Op::kEx2:
    case Op::kTanh:
    case Op::kDiv: return Compute<double>(op, x, y, z);
    default: throw Error("unsupported instruction " + i.text);
  }
}

u64 Half(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c) {
  if (op == Op::kNeg) return ZeroExtend(a ^ 0x8000, Type::kB16);
  if (op == Op::kAbs) return a & 0x7fff;
  if (op == Op::kCopysign) return (b & 0x7fff) | (a & 0x8000);

  const bool is_half = type == Type::kF16;
  const double least_normal = is_half ? 0x1p-14 : 0x1p-126;
  const auto operand = [&](u64 bits) {
    const double value =
        is_half ? FromHalf(static_cast<u16>(bits)) : FromBf16(static_cast<u16>(bits));
    return i.ftz && std::fabs(value) < least_normal ? std::copysign(0.0, value) : value;
  };
  double value = HalfInDouble(i, op, operand(a), operand(b), operand(c));
  if (i.sat) value = Saturated(value);
  if (i.relu && !std::isnan(value)) value = value > 0 ? value : 0;
  const u16 result = is_half ? ToHalf(value, i.rounding) : ToBf16(value, i.rounding);
  const bool subnormal = (result & 0x7fff) < (is_half ? 0x400 : 0x80);
  return i.ftz && subnormal ? result & 0x8000 : result;
}

}  // namespace

u64 FloatArithmetic(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c) {
  if (type == Type::kF32) return Single(i, op, a, b, c);
  if (type == Type::kF64) {
    const RoundingScope rounding(i.rounding);
    return BitsOf(Compute<double>(op, DoubleOf(a), DoubleOf(b), DoubleOf(c)));
  }
  if (IsHalf(type)) return Half(i, op, type, a, b, c);
  const Type lane = type == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  const u64 low = Half(i, op, lane, a & 0xffff, b & 0xffff, c & 0xffff);
  return low | Half(i, op, lane, a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff) << 16;
}

}  // namespace ptx
