// mov, cvt, selections and comparisons.
#include <cmath>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

Flow MovWide(Lane& lane) {
  const Operand &to = lane.At(0), &from = lane.At(1);
  u64 halves[2];
  if (from.IsVector() && from.parts.size() == 2)
    for (std::size_t k = 0; k < 2; k++) halves[k] = lane.Value(from.parts[k]);
  else
    lane.GetWide(from, reinterpret_cast<u8*>(halves));
  if (to.IsVector() && to.parts.size() == 2)
    for (std::size_t k = 0; k < 2; k++) lane.Put(to.parts[k], halves[k]);
  else
    lane.PutWide(to, reinterpret_cast<const u8*>(halves));
  return Flow::kNext;
}

// {a, b} = v, or v = {a, b}: the parts share the type's width.
Flow Mov(Lane& lane) {
  const Operand &to = lane.At(0), &from = lane.At(1);
  const Type type = lane.ins.type;
  if (type == Type::kB128) return MovWide(lane);
  if (to.IsVector()) {
    const unsigned bytes = Bytes(type) / static_cast<unsigned>(to.parts.size());
    u64 value = lane.Value(from);
    for (const Operand& part : to.parts) {
      lane.Put(part, value & ByteMask(bytes));
      value >>= 8 * bytes;
    }
  } else if (from.IsVector()) {
    const unsigned bytes = Bytes(type) / static_cast<unsigned>(from.parts.size());
    u64 value = 0;
    for (std::size_t k = 0; k < from.parts.size(); k++)
      value |= (lane.Value(from.parts[k]) & ByteMask(bytes)) << (std::size_t{8} * bytes * k);
    lane.Put(to, value);
  } else {
    lane.Put(to, ZeroExtend(lane.Value(from), type));
  }
  return Flow::kNext;
}

Flow Cvt(Lane& lane) {
  lane.Set(0, Convert(lane.ins, lane.Get(1), lane.Count() > 2 ? lane.Get(2) : 0));
  return Flow::kNext;
}

Flow Selp(Lane& lane) {
  lane.Set(0, ZeroExtend(lane.Get((lane.Get(3) & 1) != 0 ? 1 : 2), lane.ins.type));
  return Flow::kNext;
}

Flow Slct(Lane& lane) {
  const u64 c = lane.Get(3);
  const bool not_negative =
      lane.ins.type2 == Type::kF32 ? FloatOf(c) >= 0 : SignExtend(c, Type::kS32) >= 0;
  lane.Set(0, ZeroExtend(lane.Get(not_negative ? 1 : 2), lane.ins.type));
  return Flow::kNext;
}

// set's "true": 1.0 or all ones.
u64 TrueOf(Type type) {
  switch (type) {
    case Type::kF32: return 0x3f800000;
    case Type::kF16: return 0x3c00;
    case Type::kBf16: return 0x3f80;
    default: return ByteMask(Bytes(type));
  }
}

u64 TrueOfPairLane(const Lane& lane) {
  const Type type = lane.ins.type;
  if (type == Type::kF16x2) return 0x3c00;
  if (type == Type::kBf16x2) return 0x3f80;
  if (Bytes(type) != 4 || type == Type::kF32) lane.Unsupported();
  return 0xffff;
}

Flow ComparePair(Lane& lane, Type pair) {
  const Instruction& i = lane.ins;
  const Type type = pair == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  const std::size_t source = i.two_results ? 2 : 1;
  const u64 x = lane.Get(source), y = lane.Get(source + 1);
  const bool low = IsTrue(i.compare, type, x & 0xffff, y & 0xffff, i.ftz);
  const bool high = IsTrue(i.compare, type, x >> 16 & 0xffff, y >> 16 & 0xffff, i.ftz);
  if (i.combine != Combine::kNone) lane.Unsupported();
  if (i.op == Op::kSetp) {
    if (!i.two_results) lane.Unsupported();
    lane.Set(0, low);
    lane.Set(1, high);
  } else {
    const u64 one = TrueOfPairLane(lane);
    lane.Set(0, (low ? one : 0) | (high ? one : 0) << 16);
  }
  return Flow::kNext;
}

bool Combined(Combine combine, bool x, bool y) {
  switch (combine) {
    case Combine::kAnd: return x && y;
    case Combine::kOr: return x || y;
    case Combine::kXor: return x != y;
    default: return x;
  }
}

// setp's second result is the comparison's opposite, combined with the same predicate.
Flow Comparison(Lane& lane) {
  const Instruction& i = lane.ins;
  const Type type = i.op == Op::kSet ? i.type2 : i.type;
  if (IsHalfPair(type)) return ComparePair(lane, type);
  const std::size_t source = i.two_results ? 2 : 1;
  const bool holds = IsTrue(i.compare, type, lane.Get(source), lane.Get(source + 1), i.ftz);
  const bool other = i.combine != Combine::kNone && (lane.Get(source + 2) & 1) != 0;
  const bool result = Combined(i.combine, holds, other);
  if (i.op == Op::kSet) {
    lane.Set(0, result ? TrueOf(i.type) : 0);
    return Flow::kNext;
  }
  // before the first result is written: it may be the predicate that is combined
  const bool opposite = Combined(i.combine, !holds, other);
  lane.Set(0, result);
  if (i.two_results) lane.Set(1, opposite);
  return Flow::kNext;
}

}  // namespace

Handler MoveHandler(Op op) {
  switch (op) {
    case Op::kMov: return Mov;
    case Op::kCvt: return Cvt;
    case Op::kSelp: return Selp;
    case Op::kSlct: return Slct;
    case Op::kSetp:
    case Op::kSet: return Comparison;
    default: return nullptr;
  }
}

}  // namespace ptx
