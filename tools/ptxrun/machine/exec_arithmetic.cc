// Arithmetic that integers and floats share, carries, and tests of floats. What they compute is in
// arithmetic.h.
#include <cmath>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

Flow Unary(Lane& lane) {
  lane.Set(0, Arithmetic(lane.ins, lane.ins.op, lane.ins.type, lane.Get(1), 0, 0));
  return Flow::kNext;
}

Flow Binary(Lane& lane) {
  const Instruction& i = lane.ins;
  u64 result = Arithmetic(i, i.op, i.type, lane.Get(1), lane.Get(2), 0);
  // min and max of three
  if (lane.Count() > 3 && (i.op == Op::kMin || i.op == Op::kMax))
    result = Arithmetic(i, i.op, i.type, result, lane.Get(3), 0);
  lane.Set(0, result);
  return Flow::kNext;
}

Flow Ternary(Lane& lane) {
  const Instruction& i = lane.ins;
  lane.Set(0, Arithmetic(i, i.op, i.type, lane.Get(1), lane.Get(2), lane.Get(3)));
  return Flow::kNext;
}

// x + y, or x - y, with the carry.
void SetWithCarry(Lane& lane, u64 x, u64 y, bool subtract) {
  const Instruction& i = lane.ins;
  using Wide = unsigned __int128;
  const Wide a = ZeroExtend(x, i.type), b = ZeroExtend(y, i.type);
  const Wide carry = i.carry_in && lane.thread.carry ? 1 : 0;
  const Wide result = subtract ? a - b - carry : a + b + carry;
  if (i.carry_out) lane.thread.carry = (result >> Bits(i.type) & 1) != 0;
  lane.Set(0, ZeroExtend(static_cast<u64>(result), i.type));
}

Flow AddOrSub(Lane& lane) {
  if (!lane.ins.carry_in && !lane.ins.carry_out) return Binary(lane);
  SetWithCarry(lane, lane.Get(1), lane.Get(2), lane.ins.op == Op::kSub);
  return Flow::kNext;
}

Flow Mad(Lane& lane) {
  const Instruction& i = lane.ins;
  if (!i.carry_in && !i.carry_out) return Ternary(lane);
  const u64 product = Arithmetic(i, Op::kMul, i.type, lane.Get(1), lane.Get(2), 0);
  SetWithCarry(lane, product, lane.Get(3), false);
  return Flow::kNext;
}

template <class F>
bool IsOfClass(const std::string& name, F x) {
  if (name == "finite") return std::isfinite(x);
  if (name == "infinite") return std::isinf(x);
  if (name == "number") return !std::isnan(x);
  if (name == "notanumber") return std::isnan(x);
  if (name == "normal") return std::isnormal(x);
  return std::fpclassify(x) == FP_SUBNORMAL;
}

Flow Testp(Lane& lane) {
  const std::string& name = lane.ins.modifiers[0];
  const u64 x = lane.Get(1);
  lane.Set(
      0, lane.ins.type == Type::kF32 ? IsOfClass(name, FloatOf(x)) : IsOfClass(name, DoubleOf(x)));
  return Flow::kNext;
}

}  // namespace

Handler ArithmeticHandler(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kSub: return AddOrSub;
    case Op::kMad: return Mad;
    case Op::kFma: return Ternary;
    case Op::kMul:
    case Op::kDiv:
    case Op::kRem:
    case Op::kMin:
    case Op::kMax:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kShl:
    case Op::kShr:
    case Op::kCopysign: return Binary;
    case Op::kAbs:
    case Op::kNeg:
    case Op::kNot:
    case Op::kCnot:
    case Op::kRcp:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kSin:
    case Op::kCos:
    case Op::kLg2:
    case Op::kEx2:
    case Op::kTanh: return Unary;
    case Op::kTestp: return Testp;
    default: return nullptr;
  }
}

}  // namespace ptx
