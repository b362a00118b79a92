// Integer arithmetic, packed integers, comparisons.
#include "tools/ptxrun/machine/arithmetic.h"

#include <algorithm>
#include <cstdint>

#include "tools/ptxrun/machine/small_float.h"
#include "tools/ptxrun/machine/values.h"

namespace ptx {
namespace {

u64 IntegerPair(const Instruction& i, Op op, Type type, u64 a, u64 b) {
  u64 result = 0;
  const Type lane = type == Type::kS16x2 ? Type::kS16 : Type::kU16;
  for (unsigned shift : {0U, 16U}) {
    const i64 x = IntegerOf(a >> shift, lane), y = IntegerOf(b >> shift, lane);
    i64 z = op == Op::kAdd ? x + y : op == Op::kMin ? std::min(x, y) : std::max(x, y);
    if (i.relu && z < 0) z = 0;
    result |= ZeroExtend(static_cast<u64>(z), lane) << shift;
  }
  return result;
}

u64 SumOrDifference(const Instruction& i, Op op, Type type, u64 a, u64 b) {
  if (!i.sat || type != Type::kS32) return ZeroExtend(op == Op::kAdd ? a + b : a - b, type);
  const i64 x = SignExtend(a, type), y = SignExtend(b, type);
  const i64 exact = op == Op::kAdd ? x + y : x - y;
  return ZeroExtend(static_cast<u64>(std::clamp<i64>(exact, INT32_MIN, INT32_MAX)), type);
}

// The low 24 bits.
i64 Low24(i64 x, bool is_signed) {
  return is_signed ? static_cast<i64>(static_cast<u64>(x) << 40) >> 40 : x & 0xffffff;
}

u64 Product(const Instruction& i, Type type, u64 a, u64 b, u64 addend) {
  i64 x = IntegerOf(a, type), y = IntegerOf(b, type);
  if (i.mul24) {
    x = Low24(x, IsSigned(type));
    y = Low24(y, IsSigned(type));
  }
  const __int128 product =
      IsSigned(type) ? static_cast<__int128>(x) * y
                     : static_cast<__int128>(static_cast<unsigned __int128>(static_cast<u64>(x)) *
                                             static_cast<u64>(y));
  if (i.wide) {
    const u64 result = static_cast<u64>(product) + addend;
    return Bits(type) == 32 ? result : result & 0xffffffff;
  }
  return ZeroExtend(static_cast<u64>(i.hi ? product >> Bits(type) : product) + addend, type);
}

// Division by zero gives all ones, and x itself as the remainder.
u64 QuotientOrRemainder(Op op, Type type, u64 a, u64 b) {
  const i64 x = IntegerOf(a, type), y = IntegerOf(b, type);
  const bool quotient = op == Op::kDiv;
  if (y == 0) return quotient ? ByteMask(Bytes(type)) : ZeroExtend(a, type);
  if (!IsSigned(type)) {
    const u64 ux = static_cast<u64>(x), uy = static_cast<u64>(y);
    return quotient ? ux / uy : ux % uy;
  }
  if (y == -1) return quotient ? ZeroExtend(0 - static_cast<u64>(x), type) : 0;
  return ZeroExtend(static_cast<u64>(quotient ? x / y : x % y), type);
}

u64 Shifted(Op op, Type type, u64 a, u64 b) {
  const unsigned count = static_cast<u32>(b), width = Bits(type);
  if (op == Op::kShr && IsSigned(type))
    return ZeroExtend(static_cast<u64>(SignExtend(a, type) >> std::min(count, width - 1)), type);
  if (count >= width) return 0;
  return op == Op::kShl ? ZeroExtend(a << count, type) : ZeroExtend(a, type) >> count;
}

bool HoldsInteger(Compare compare, Type type, u64 a, u64 b) {
  if (IsSigned(type) && !IsUnsigned(compare))
    return Holds(compare, SignExtend(a, type), SignExtend(b, type));
  return Holds(compare, ZeroExtend(a, type), ZeroExtend(b, type));
}

}  // namespace

u64 IntegerArithmetic(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c) {
  const i64 x = IntegerOf(a, type), y = IntegerOf(b, type);
  switch (op) {
    case Op::kAdd:
    case Op::kSub: return SumOrDifference(i, op, type, a, b);
    case Op::kMul: return Product(i, type, a, b, 0);
    case Op::kMad: return Product(i, type, a, b, c);
    case Op::kDiv:
    case Op::kRem: return QuotientOrRemainder(op, type, a, b);
    case Op::kAbs: return ZeroExtend(x < 0 ? 0 - static_cast<u64>(x) : a, type);
    case Op::kNeg: return ZeroExtend(0 - a, type);
    case Op::kMin:
    case Op::kMax: {
      const bool less = IsSigned(type) ? x < y : static_cast<u64>(x) < static_cast<u64>(y);
      return ZeroExtend(less == (op == Op::kMin) ? a : b, type);
    }
    case Op::kAnd: return ZeroExtend(a & b, type);
    case Op::kOr: return ZeroExtend(a | b, type);
    case Op::kXor: return ZeroExtend(a ^ b, type);
    case Op::kNot: return type == Type::kPred ? (a & 1) == 0 : ZeroExtend(~a, type);
    case Op::kCnot: return ZeroExtend(a, type) == 0;
    case Op::kShl:
    case Op::kShr: return Shifted(op, type, a, b);
    default: throw Error("int op " + i.text);
  }
}

u64 Arithmetic(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c) {
  if (IsIntegerPair(type)) return IntegerPair(i, op, type, a, b);
  if (IsFloat(type)) return FloatArithmetic(i, op, type, a, b, c);
  return IntegerArithmetic(i, op, type, a, b, c);
}

bool IsTrue(Compare compare, Type type, u64 a, u64 b, bool ftz) {
  if (!IsFloat(type)) return HoldsInteger(compare, type, a, b);
  switch (type) {
    case Type::kF64: return HoldsFloat(compare, DoubleOf(a), DoubleOf(b));
    case Type::kF16:
      return HoldsFloat(compare, FromHalf(static_cast<u16>(a)), FromHalf(static_cast<u16>(b)));
    case Type::kBf16:
      return HoldsFloat(compare, FromBf16(static_cast<u16>(a)), FromBf16(static_cast<u16>(b)));
    case Type::kF32:
      if (ftz) return HoldsFloat(compare, FlushSubnormal(FloatOf(a)), FlushSubnormal(FloatOf(b)));
      return HoldsFloat(compare, FloatOf(a), FloatOf(b));
    default: throw Error("packed comparison");
  }
}

u32 PermuteBytes(u64 bytes, u32 selector) {
  u32 result = 0;
  for (unsigned k = 0; k < 4; k++) {
    const u32 nibble = selector >> (4 * k) & 15;
    u32 byte = static_cast<u32>(bytes >> (8 * (nibble & 7))) & 255;
    if ((nibble & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;  // the sign bit, repeated
    result |= byte << (8 * k);
  }
  return result;
}

}  // namespace ptx
