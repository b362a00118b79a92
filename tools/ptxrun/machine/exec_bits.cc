// Operations on the bits and bytes of integers.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

Flow Shf(Lane& lane) {
  const u64 value = u64{lane.Get32(2)} << 32 | lane.Get32(1);
  const u32 wanted = lane.Get32(3);
  const u32 count = lane.ins.clamp ? std::min(wanted, 32U) : wanted & 31;
  const bool left = lane.ins.modifiers[0] == "l";
  lane.Set(0, static_cast<u32>(left ? value >> (32 - count) : value >> count));
  return Flow::kNext;
}

Flow Bfe(Lane& lane) {
  const Type type = lane.ins.type;
  const unsigned width = Bits(type);
  const u64 value = ZeroExtend(lane.Get(1), type);
  const u32 position = lane.Get32(2) & 255, length = lane.Get32(3) & 255;
  u64 result = position >= width ? 0 : value >> position;
  if (length < width) result &= (u64{1} << length) - 1;
  if (IsSigned(type) && length != 0) {
    // the field's highest bit, or the source's where the field ends beyond it
    const u32 sign = std::min(position + length - 1, width - 1);
    const u32 kept = sign >= position ? sign - position + 1 : 0;
    if ((value >> sign & 1) != 0 && kept < width) result |= ~u64{0} << kept;
  }
  lane.Set(0, ZeroExtend(result, type));
  return Flow::kNext;
}

Flow Bfi(Lane& lane) {
  const Type type = lane.ins.type;
  const u64 field = lane.Get(1);
  u64 result = ZeroExtend(lane.Get(2), type);
  const u32 position = lane.Get32(3) & 255, length = lane.Get32(4) & 255;
  const u64 mask = length >= 64 ? ~u64{0} : (u64{1} << length) - 1;
  if (position < Bits(type)) result = (result & ~(mask << position)) | (field & mask) << position;
  lane.Set(0, ZeroExtend(result, type));
  return Flow::kNext;
}

Flow Bfind(Lane& lane) {
  const Type type = lane.ins.type;
  u64 value = ZeroExtend(lane.Get(1), type);
  if (IsSigned(type) && SignExtend(value, type) < 0) value = ZeroExtend(~value, type);
  u32 result = ~0U;
  if (value != 0) {
    result = 63 - static_cast<u32>(std::countl_zero(value));
    if (lane.ins.modifiers[0] == "shiftamt") result = Bits(type) - 1 - result;
  }
  lane.Set(0, result);
  return Flow::kNext;
}

Flow Bmsk(Lane& lane) {
  u32 position = lane.Get32(1), length = lane.Get32(2);
  if (!lane.ins.clamp) {
    position &= 31;
    length &= 31;
  }
  const u64 ones = length >= 32 ? ~u64{0} : (u64{1} << length) - 1;
  lane.Set(0, position >= 32 ? 0 : static_cast<u32>(ones << position));
  return Flow::kNext;
}

Flow Clz(Lane& lane) {
  const u64 value = ZeroExtend(lane.Get(1), lane.ins.type);
  lane.Set(0, static_cast<u64>(std::countl_zero(value)) - (64 - Bits(lane.ins.type)));
  return Flow::kNext;
}

Flow Popc(Lane& lane) {
  lane.Set(0, static_cast<u64>(std::popcount(ZeroExtend(lane.Get(1), lane.ins.type))));
  return Flow::kNext;
}

Flow Brev(Lane& lane) {
  const u64 value = lane.Get(1);
  const unsigned width = Bits(lane.ins.type);
  u64 result = 0;
  for (unsigned k = 0; k < width; k++) result |= (value >> k & 1) << (width - 1 - k);
  lane.Set(0, result);
  return Flow::kNext;
}

Flow Prmt(Lane& lane) {
  if (lane.ins.modifiers.size() > 1) lane.Fail("prmt mode");
  lane.Set(0, PermuteBytes(u64{lane.Get32(2)} << 32 | lane.Get32(1), lane.Get32(3)));
  return Flow::kNext;
}

// Any function of three bits, by its table of eight.
Flow Lop3(Lane& lane) {
  const std::size_t source = lane.ins.two_results ? 2 : 1;
  const u32 a = lane.Get32(source), b = lane.Get32(source + 1), c = lane.Get32(source + 2);
  const u32 table = lane.Get32(source + 3);
  u32 result = 0;
  for (u32 k = 0; k < 8; k++) {
    if ((table >> k & 1) == 0) continue;
    result |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
  }
  lane.Set(0, result);
  return Flow::kNext;
}

Flow Dp4a(Lane& lane) {
  const Type a_lane = lane.ins.type == Type::kS32 ? Type::kS8 : Type::kU8;
  const Type b_lane = lane.ins.type2 == Type::kS32 ? Type::kS8 : Type::kU8;
  const u32 a = lane.Get32(1), b = lane.Get32(2);
  i64 sum = static_cast<i64>(lane.Get(3));
  for (unsigned shift = 0; shift < 32; shift += 8)
    sum += IntegerOf(a >> shift, a_lane) * IntegerOf(b >> shift, b_lane);
  lane.Set(0, static_cast<u32>(sum));
  return Flow::kNext;
}

Flow Sad(Lane& lane) {
  const Type type = lane.ins.type;
  const i64 a = IntegerOf(lane.Get(1), type), b = IntegerOf(lane.Get(2), type);
  lane.Set(0, ZeroExtend(lane.Get(3) + static_cast<u64>(a < b ? b - a : a - b), type));
  return Flow::kNext;
}

// The n-th set bit at or after (or before, if n < 0) a position.
u32 FindNthSet(u32 mask, u32 base, int n) {
  if (n == 0) return (mask >> base & 1) != 0 ? base : ~0U;
  const int step = n > 0 ? 1 : -1;
  int left = std::abs(n);
  for (int k = static_cast<int>(base); k >= 0 && k < 32; k += step)
    if ((mask >> k & 1) != 0 && --left == 0) return static_cast<u32>(k);
  return ~0U;
}

Flow Fns(Lane& lane) {
  const u32 base = lane.Get32(2);
  if (base > 31) lane.Fail("fns base");
  lane.Set(0, FindNthSet(lane.Get32(1), base, static_cast<int>(lane.Get32(3))));
  return Flow::kNext;
}

i64 SimdOf(Simd simd, i64 x, i64 y) {
  switch (simd) {
    case Simd::kAdd: return x + y;
    case Simd::kSub: return x - y;
    case Simd::kAbsdiff: return std::abs(x - y);
    case Simd::kMin: return std::min(x, y);
    default: return std::max(x, y);
  }
}

Flow SimdInWord(Lane& lane) {
  const Instruction& i = lane.ins;
  const u32 a = lane.Get32(1), b = lane.Get32(2);
  const unsigned width = 32U / i.simd_lanes;
  const auto element = [&](u32 word, unsigned k) -> i64 {
    const u32 top = word << (32 - width * (k + 1));
    if (i.type2 == Type::kS32) return static_cast<std::int32_t>(top) >> (32 - width);
    return top >> (32 - width);
  };
  const i64 values = i64{1} << width;
  u32 result = i.accumulate && lane.Count() > 3 ? lane.Get32(3) : 0;
  for (unsigned k = 0; k < i.simd_lanes; k++) {
    i64 value = SimdOf(i.simd, element(a, k), element(b, k));
    if (i.sat && i.type == Type::kS32)
      value = std::clamp<i64>(value, -values / 2, values / 2 - 1);
    else if (i.sat)
      value = std::clamp<i64>(value, 0, values - 1);
    if (i.accumulate)
      result += static_cast<u32>(value);
    else
      result |= (static_cast<u32>(value) & static_cast<u32>(values - 1)) << (width * k);
  }
  lane.Set(0, result);
  return Flow::kNext;
}

}  // namespace

Handler BitsHandler(Op op) {
  switch (op) {
    case Op::kShf: return Shf;
    case Op::kBfe: return Bfe;
    case Op::kBfi: return Bfi;
    case Op::kBfind: return Bfind;
    case Op::kBmsk: return Bmsk;
    case Op::kClz: return Clz;
    case Op::kPopc: return Popc;
    case Op::kBrev: return Brev;
    case Op::kPrmt: return Prmt;
    case Op::kLop3: return Lop3;
    case Op::kDp4a: return Dp4a;
    case Op::kSad: return Sad;
    case Op::kFns: return Fns;
    case Op::kSimd: return SimdInWord;
    default: return nullptr;
  }
}

}  // namespace ptx
