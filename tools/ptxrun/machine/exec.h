// How an instruction is executed: its handler gets a Lane and says how the thread goes on.
#pragma once

#include <cstring>

#include "tools/ptxrun/machine/machine.h"
#include "tools/ptxrun/machine/values.h"

namespace ptx {

enum class Flow : u8 {
  kNext,
  kJump,  // the frame or its pc is another
  kStop   // the other threads' turn: this one waits, yields or is done
};

// A thread at an instruction that the loop in run.cc does not do itself.
struct Lane {
  Machine& machine;
  Thread& thread;
  Frame& frame;
  u64* regs;
  const Instruction& ins;

  const Operand& At(std::size_t k) const { return ins.operands[k]; }
  std::size_t Count() const { return ins.operands.size(); }

  u64 Get(std::size_t k) const { return Value(At(k)); }
  u32 Get32(std::size_t k) const { return static_cast<u32>(Get(k)); }
  u64 Value(const Operand& operand) const {
    if (operand.IsRegister() && !operand.inverted) return regs[operand.reg];
    return OtherValue(operand);
  }
  void Set(std::size_t k, u64 value) const { Put(At(k), value); }
  void Put(const Operand& operand, u64 value) const {
    if (operand.IsRegister()) regs[operand.reg] = value;
  }

  // A 128-bit register is two of the others.
  void GetWide(const Operand& operand, u8* to) const {
    if (!operand.IsRegister()) Unsupported();
    std::memcpy(to, regs + operand.reg, 16);
  }
  void PutWide(const Operand& operand, const u8* from) const {
    if (operand.IsRegister()) std::memcpy(regs + operand.reg, from, 16);
  }

  u64 Address(const Operand& operand) const;
  // Of an operand in memory, parameters too.
  u8* Memory(const Operand& operand, unsigned bytes, Access access,
             const void* value = nullptr) const;

  [[noreturn]] void Fail(const std::string& what) const { machine.Fail(thread, ins, what); }
  [[noreturn]] void Unsupported() const { Fail("unsupported instruction"); }

 private:
  u64 OtherValue(const Operand& operand) const;
};

// Never null: what is unsupported has a handler that says so.
Handler HandlerOf(Op op);

// The groups; null if the operation belongs to another.
Handler MoveHandler(Op op);        // exec_move.cc
Handler ArithmeticHandler(Op op);  // exec_arithmetic.cc
Handler BitsHandler(Op op);        // exec_bits.cc
Handler MemoryHandler(Op op);      // exec_memory.cc
Handler WarpHandler(Op op);        // exec_warp.cc
Handler BarrierHandler(Op op);     // exec_barrier.cc
Handler CopyHandler(Op op);        // exec_copy.cc

// exec_copy.cc: what arrives now. Of cp.async all but the last `keep` groups; kAllCopies: even what
// is in no group yet.
constexpr u32 kAllCopies = ~0U;
void LandCopies(Machine& machine, Thread& thread, u32 keep);
void LandBulkCopies(Machine& machine, u8* mbarrier);
void AdvanceMbarrier(Machine& machine, u8* mbarrier, i64 arrivals, i64 bytes);

// builtins.cc: functions that have no PTX (printf, a failed assert).
void CallBuiltin(const Lane& lane, const std::string& name, const Operand* arguments,
                 const Operand* rets);

}  // namespace ptx
