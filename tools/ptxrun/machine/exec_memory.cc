// Loads, stores, address spaces and atomics.
#include <cstring>
#include <mutex>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

void Load(const Lane& lane, const Operand& to, const u8* from) {
  const Type type = lane.ins.type;
  if (type == Type::kB128) return lane.PutWide(to, from);
  u64 value = 0;
  std::memcpy(&value, from, Bytes(type));
  lane.Put(to, IsSigned(type) ? static_cast<u64>(SignExtend(value, type)) : value);
}

Flow Ld(Lane& lane) {
  const unsigned bytes = Bytes(lane.ins.type);
  const u8* from = lane.Memory(lane.At(1), bytes * lane.ins.vec, Access::kRead);
  if (!lane.At(0).IsVector()) {
    Load(lane, lane.At(0), from);
    return Flow::kNext;
  }
  for (const Operand& part : lane.At(0).parts) {
    Load(lane, part, from);
    from += bytes;
  }
  return Flow::kNext;
}

void Append(const Lane& lane, const Operand& from, u8* to) {
  if (lane.ins.type == Type::kB128) return lane.GetWide(from, to);
  const u64 value = lane.Value(from);
  std::memcpy(to, &value, Bytes(lane.ins.type));
}

Flow St(Lane& lane) {
  const unsigned bytes = Bytes(lane.ins.type), total = bytes * lane.ins.vec;
  u8 values[128];  // .v8.b128, more than there is
  u8* next = values;
  if (lane.At(1).IsVector()) {
    for (const Operand& part : lane.At(1).parts) {
      Append(lane, part, next);
      next += bytes;
    }
  } else {
    Append(lane, lane.At(1), next);
  }
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
  u64 base = BaseOf(lane, lane.ins.space);
  if (from.kind == Operand::Kind::kSymbol && lane.ins.space == Space::kGeneric)
    base = from.symbol->space == Space::kShared ? BaseOf(lane, Space::kShared) : 0;
  const u64 value = lane.Value(from);
  lane.Set(0, lane.ins.to ? value - base : value + base);
  return Flow::kNext;
}

Flow Isspacep(Lane& lane) {
  const u64 address = lane.Get(1);
  const bool shared = lane.machine.IsSharedAddress(address);
  const bool local = lane.machine.IsLocalAddress(lane.thread, address);
  switch (lane.ins.space) {
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

u64 ExchangeBytes(const Lane& lane, unsigned bytes, u8* address, u64 x, u64 y) {
  switch (bytes) {
    case 2: return Exchange<u16>(lane, address, x, y);
    case 4: return Exchange<u32>(lane, address, x, y);
    case 8: return Exchange<u64>(lane, address, x, y);
    default: lane.Unsupported();
  }
}

// Every element is an atomic of its own.
Flow VectorAtomic(Lane& lane, std::size_t at, bool has_result) {
  const unsigned bytes = Bytes(lane.ins.type);
  const Operand& values = lane.At(at + 1);
  if (values.parts.size() != lane.ins.vec) lane.Unsupported();
  u8* address = lane.Memory(lane.At(at), bytes * lane.ins.vec, Access::kAtomicWrite);
  for (std::size_t k = 0; k < values.parts.size(); k++, address += bytes) {
    const u64 old = ExchangeBytes(lane, bytes, address, lane.Value(values.parts[k]), 0);
    if (has_result) lane.Put(lane.At(0).parts.at(k), old);
  }
  return Flow::kNext;
}

// exch and cas of 16 bytes, for which not every CPU has an instruction.
Flow WideAtomic(Lane& lane) {
  static std::mutex mutex;
  u8* const address = lane.Memory(lane.At(1), 16, Access::kAtomicWrite);
  u8 old[16], x[16], y[16];
  lane.GetWide(lane.At(2), x);
  const bool is_cas = lane.ins.atomic == Atomic::kCas;
  if (is_cas) lane.GetWide(lane.At(3), y);
  {
    const std::lock_guard lock(mutex);
    std::memcpy(old, address, 16);
    if (!is_cas)
      std::memcpy(address, x, 16);
    else if (std::memcmp(old, x, 16) == 0)
      std::memcpy(address, y, 16);
  }
  lane.PutWide(lane.At(0), old);
  return Flow::kNext;
}

Flow AtomOrRed(Lane& lane) {
  const bool has_result = lane.ins.op == Op::kAtom;
  const std::size_t at = has_result ? 1 : 0;
  if (lane.ins.type == Type::kB128) return WideAtomic(lane);
  if (lane.ins.vec > 1) return VectorAtomic(lane, at, has_result);
  const unsigned bytes = Bytes(lane.ins.type);
  u8* const address = lane.Memory(lane.At(at), bytes, Access::kAtomicWrite);
  const u64 x = lane.Get(at + 1), y = lane.Count() > at + 2 ? lane.Get(at + 2) : 0;
  const u64 old = ExchangeBytes(lane, bytes, address, x, y);
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
