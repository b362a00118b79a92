// Branches, calls and ends; and the table of all handlers.
#include <algorithm>
#include <cstring>

#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

Flow Bra(Lane& lane) {
  lane.frame.pc = lane.ins.target;
  return Flow::kJump;
}

Flow Brx(Lane& lane) {
  const u32 index = lane.Get32(0);
  const Function& function = *lane.frame.function;
  const auto targets = function.targets.find(lane.At(1).name);
  if (targets == function.targets.end() || index >= targets->second.size())
    lane.Fail("brx.idx index");
  lane.frame.pc = function.labels.at(targets->second[index]);
  return Flow::kJump;
}

// call (rets), function, (arguments): the lists may be missing.
struct CallOperands {
  explicit CallOperands(const Instruction& call) {
    for (const Operand& operand : call.operands) {
      if (!operand.IsVector()) {
        if (!function) function = &operand;
      } else if (!function) {
        rets = &operand;
      } else if (!arguments) {
        arguments = &operand;
      }
    }
  }
  const Operand *rets = nullptr, *function = nullptr, *arguments = nullptr;
};

Function* CalleeOf(Lane& lane, const Operand& function) {
  if (lane.ins.callee || !function.IsRegister()) return lane.ins.callee;
  const auto found = functions_by_address.find(lane.regs[function.reg]);
  if (found == functions_by_address.end()) lane.Fail("bad indirect call");
  return found->second;
}

void PassArguments(const Lane& lane, const Operand& arguments, const Function& callee, u8* params) {
  for (std::size_t k = 0; k < arguments.parts.size(); k++) {
    const Operand& argument = arguments.parts[k];
    const Symbol& to = *callee.params.at(k);
    if (argument.kind == Operand::Kind::kSymbol) {
      std::memcpy(params + to.offset, lane.frame.params + argument.symbol->offset,
                  std::min(to.size, argument.symbol->size));
    } else {
      const u64 value = lane.Value(argument);
      std::memcpy(params + to.offset, &value, std::min<u64>(8, to.size));
    }
  }
}

Flow Call(Lane& lane) {
  const CallOperands operands(lane.ins);
  if (!operands.function) lane.Fail("call of nothing");
  Function* const callee = CalleeOf(lane, *operands.function);
  if (!callee || !callee->defined) {
    CallBuiltin(lane, callee ? callee->name : operands.function->name, operands.arguments,
                operands.rets);
    return Flow::kNext;
  }
  const Frame& caller = lane.frame;
  Frame frame;
  frame.function = callee;
  frame.first_register = caller.first_register + caller.function->slots;
  frame.local_base = RoundUp(caller.local_base + caller.function->local_bytes, 16);
  frame.own_params = std::make_unique<u8[]>(callee->param_bytes + 16);
  frame.params = frame.own_params.get();
  frame.call = &lane.ins;
  if (operands.arguments) PassArguments(lane, *operands.arguments, *callee, frame.params);
  if (frame.local_base + callee->local_bytes > Machine::kLocalBytes) lane.Fail("stack overflow");

  Thread& thread = lane.thread;
  thread.regs.resize(frame.first_register + callee->slots);
  thread.frames.push_back(std::move(frame));
  lane.machine.SetConstants(thread, thread.frames.back());
  return Flow::kJump;
}

void ReturnValues(Thread& thread, const Frame& done) {
  const auto& operands = done.call->operands;
  if (operands.empty() || !operands[0].IsVector()) return;
  const std::vector<Operand>& rets = operands[0].parts;
  const Frame& frame = thread.frames.back();
  for (std::size_t k = 0; k < std::min(rets.size(), done.function->rets.size()); k++) {
    const Symbol& from = *done.function->rets[k];
    const Operand& to = rets[k];
    if (to.kind == Operand::Kind::kSymbol) {
      std::memcpy(frame.params + to.symbol->offset, done.params + from.offset,
                  std::min(from.size, to.symbol->size));
    } else if (to.IsRegister()) {
      u64 value = 0;
      std::memcpy(&value, done.params + from.offset, std::min<u64>(8, from.size));
      thread.regs[frame.first_register + to.reg] = value;
    }
  }
}

Flow Exit(Lane& lane) {
  lane.machine.Finish(lane.thread);
  return Flow::kStop;
}

Flow Ret(Lane& lane) {
  Thread& thread = lane.thread;
  if (thread.frames.size() == 1) return Exit(lane);
  const Frame done = std::move(thread.frames.back());
  thread.frames.pop_back();
  ReturnValues(thread, done);
  return Flow::kJump;
}

Flow Trap(Lane& lane) { lane.Fail("trap"); }
Flow Nop(Lane&) { return Flow::kNext; }
Flow Unsupported(Lane& lane) { lane.Unsupported(); }

Handler ControlHandler(Op op) {
  switch (op) {
    case Op::kBra: return Bra;
    case Op::kBrx: return Brx;
    case Op::kCall: return Call;
    case Op::kRet: return Ret;
    case Op::kExit: return Exit;
    case Op::kTrap: return Trap;
    case Op::kNop: return Nop;
    default: return nullptr;
  }
}

}  // namespace

// Those that wait for it in a warp operation need it no more.
void Machine::Finish(Thread& thread) {
  LandCopies(*this, thread, kAllCopies);
  thread.state = Thread::State::kDone;
  block_->alive--;
  block_->gone[thread.warp] |= 1U << thread.lane;
  const u32 first = thread.warp * kWarpSize;
  const u32 end = std::min(first + kWarpSize, static_cast<u32>(block_->threads.size()));
  for (u32 k = first; k < end; k++) {
    Thread& other = block_->threads[k];
    if (other.state == Thread::State::kWarp) CompleteWarpOperation(other);
  }
}

Handler HandlerOf(Op op) {
  for (const auto group : {MoveHandler, ArithmeticHandler, BitsHandler, MemoryHandler, WarpHandler,
                           BarrierHandler, CopyHandler, ControlHandler})
    if (const Handler handler = group(op)) return handler;
  return Unsupported;
}

}  // namespace ptx
