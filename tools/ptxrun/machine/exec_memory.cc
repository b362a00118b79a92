// Loads, stores, address spaces and atomics.
#include <cstring>
#include <type_traits>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

Flow Ld(Lane& lane) {
  const Instruction& i = lane.ins;
  const unsigned bytes = Bytes(i.type);
  if (bytes > 8) lane.Unsupported();
  const u8* from = lane.Memory(lane.At(1), bytes * i.vec, Access::kRead);
  const auto load = [&](const Operand& to) {
    u64 value = 0;
    std::memcpy(&value, from, bytes);
    from += bytes;
    lane.Put(to, IsSigned(i.type) ? static_cast<u64>(SignExtend(value, i.type)) : value);
  };
  if (lane.At(0).IsVector())
    for (const Operand& part : lane.At(0).parts) load(part);
  else
    load(lane.At(0));
  return Flow::kNext;
}

Flow St(Lane& lane) {
  const unsigned bytes = Bytes(lane.ins.type);
  if (bytes > 8) lane.Unsupported();
  u8 values[64];
  u8* next = values;
  const auto append = [&](const Operand& from) {
    const u64 value = lane.Value(from);
    std::memcpy(next, &value, bytes);
    next += bytes;
  };
  if (lane.At(1).IsVector())
    for (const Operand& part : lane.At(1).parts) append(part);
  else
    append(lane.At(1));
  const unsigned total = bytes * lane.ins.vec;
  std::memcpy(lane.Memory(lane.At(0), total, Access::kWrite, values), values, total);
  return Flow::kNext;
}

u64 BaseOf(const Lane& lane, Space space) {
  switch (space) {
    case Space::kShared: return reinterpret_cast<u64>(lane.machine.block().shared);
    case Space::kLocal: return reinterpret_cast<u64>(lane.thread.local);
    case Space::kParam: return reinterpret_cast<u64>(lane.frame.params);
    default: return 0;
  }
}

Flow Cvta(Lane& lane) {
  const Operand& from = lane.At(1);
  u64 base = BaseOf(lane, lane.ins.sp);
  if (from.kind == Operand::Kind::kSymbol && lane.ins.sp == Space::kGeneric)
    base = from.sym->sp == Space::kShared ? BaseOf(lane, Space::kShared) : 0;
  const u64 value = lane.Value(from);
  lane.Set(0, lane.ins.to ? value - base : value + base);
  return Flow::kNext;
}

Flow Isspacep(Lane& lane) {
  const u64 address = lane.Get(1);
  const bool shared = lane.machine.IsSharedAddress(address);
  const bool local = lane.machine.IsLocalAddress(lane.thread, address);
  switch (lane.ins.sp) {
    case Space::kShared: lane.Set(0, shared); break;
    case Space::kLocal: lane.Set(0, local); break;
    case Space::kGlobal: lane.Set(0, !shared && !local); break;
    case Space::kConst:
    case Space::kParam: lane.Set(0, 0); break;
    default: lane.Unsupported();
  }
  return Flow::kNext;
}

u64 AtomicResult(const Lane& lane, u64 old, u64 x, u64 y) {
  const Instruction& i = lane.ins;
  const u32 old32 = static_cast<u32>(old), x32 = static_cast<u32>(x);
  switch (i.atomic) {
    case Atomic::kAdd: return Arithmetic(i, Op::kAdd, i.type, old, x, 0);
    case Atomic::kMin: return Arithmetic(i, Op::kMin, i.type, old, x, 0);
    case Atomic::kMax: return Arithmetic(i, Op::kMax, i.type, old, x, 0);
    case Atomic::kAnd: return old & x;
    case Atomic::kOr: return old | x;
    case Atomic::kXor: return old ^ x;
    case Atomic::kExch: return x;
    case Atomic::kCas: return old == ZeroExtend(x, i.type) ? y : old;
    case Atomic::kInc: return old32 >= x32 ? 0 : old + 1;
    case Atomic::kDec: return old32 == 0 || old32 > x32 ? x : old - 1;
    default: lane.Unsupported();
  }
}

// A real atomic of the host: devices run in parallel.
template <class T>
u64 Exchange(const Lane& lane, u8* address, u64 x, u64 y) {
  T* const word = reinterpret_cast<T*>(address);
  T old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(word, &old, static_cast<T>(AtomicResult(lane, old, x, y)),
                                      false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return old;
}

Flow AtomOrRed(Lane& lane) {
  const bool has_result = lane.ins.op == Op::kAtom;
  const std::size_t at = has_result ? 1 : 0;
  const unsigned bytes = Bytes(lane.ins.type);
  if (lane.ins.vec > 1 || (bytes != 2 && bytes != 4 && bytes != 8)) lane.Unsupported();
  u8* const address = lane.Memory(lane.At(at), bytes, Access::kAtomicWrite);
  const u64 x = lane.Get(at + 1), y = lane.Count() > at + 2 ? lane.Get(at + 2) : 0;
  const u64 old = bytes == 2   ? Exchange<u16>(lane, address, x, y)
                  : bytes == 4 ? Exchange<u32>(lane, address, x, y)
                               : Exchange<u64>(lane, address, x, y);
  if (has_result) lane.Set(0, old);
  return Flow::kNext;
}

}  // namespace

Handler MemoryHandler(Op op) {
  switch (op) {
    case Op::kLd: return Ld;
    case Op::kSt: return St;
    case Op::kCvta: return Cvta;
    case Op::kIsspacep: return Isspacep;
    case Op::kAtom:
    case Op::kRed: return AtomOrRed;
    default: return nullptr;
  }
}

}  // namespace ptx
