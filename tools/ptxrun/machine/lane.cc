// Operands: values, special registers, addresses.
#include "tools/ptxrun/machine/exec.h"

namespace ptx {

u64 Machine::SpecialValue(const Thread& thread, Special special) const {
  const u32 lane_bit = 1U << thread.lane;
  const u64 workspace = cooperative_ ? reinterpret_cast<u64>(grid_workspace_) : 0;
  switch (special) {
    case Special::kTidX: return thread.id.x;
    case Special::kTidY: return thread.id.y;
    case Special::kTidZ: return thread.id.z;
    case Special::kNtidX: return block_size_.x;
    case Special::kNtidY: return block_size_.y;
    case Special::kNtidZ: return block_size_.z;
    case Special::kCtaidX: return block_->id.x;
    case Special::kCtaidY: return block_->id.y;
    case Special::kCtaidZ: return block_->id.z;
    case Special::kNctaidX: return grid_.x;
    case Special::kNctaidY: return grid_.y;
    case Special::kNctaidZ: return grid_.z;
    case Special::kLaneid: return thread.lane;
    case Special::kWarpid: return thread.warp;
    case Special::kNwarpid: return (block_->threads.size() + kWarpSize - 1) / kWarpSize;
    case Special::kWarpSize: return kWarpSize;
    case Special::kClock: return instructions;
    case Special::kNsmid: return static_cast<u64>(options.sms);
    case Special::kLanemaskEq: return lane_bit;
    case Special::kLanemaskLt: return lane_bit - 1;
    case Special::kLanemaskLe: return lane_bit | (lane_bit - 1);
    case Special::kLanemaskGt: return ~(lane_bit | (lane_bit - 1));
    case Special::kLanemaskGe: return ~(lane_bit - 1);
    case Special::kDynamicSmemSize: return dynamic_shared_bytes_;
    case Special::kTotalSmemSize: return shared_bytes_;
    case Special::kOne: return 1;
    case Special::kEnvreg1: return workspace >> 32;
    case Special::kEnvreg2: return static_cast<u32>(workspace);
    default: return 0;  // one SM, one grid
  }
}

u64 Machine::AddressOf(const Frame& frame, const Symbol& symbol) const {
  switch (symbol.space) {
    case Space::kShared: return symbol.dynamic ? dynamic_offset_ : symbol.offset;
    case Space::kLocal: return frame.local_base + symbol.offset;
    case Space::kParam: return symbol.offset;
    default: return reinterpret_cast<u64>(symbol.host) + static_cast<u64>(device) * symbol.stride;
  }
}

void Machine::SetConstants(Thread& thread, const Frame& frame) const {
  u64* const regs = &thread.regs[frame.first_register];
  for (const Constant& constant : frame.function->constants) {
    switch (constant.from) {
      case Constant::From::kImmediate: regs[constant.slot] = constant.value; break;
      case Constant::From::kSpecial:
        regs[constant.slot] = SpecialValue(thread, static_cast<Special>(constant.value));
        break;
      case Constant::From::kSymbol: regs[constant.slot] = AddressOf(frame, *constant.symbol); break;
    }
  }
}

u64 Lane::OtherValue(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kRegister: return (regs[operand.reg] & 1) == 0;
    case Operand::Kind::kImmediate:
      return operand.inverted ? operand.imm == 0 : static_cast<u64>(operand.imm);
    case Operand::Kind::kSpecial:
      return machine.SpecialValue(thread, static_cast<Special>(operand.reg));
    case Operand::Kind::kSymbol:
      return machine.AddressOf(frame, *operand.symbol) + static_cast<u64>(operand.imm);
    case Operand::Kind::kLabel: {  // a function's address
      const auto& functions = frame.function->module->functions;
      const auto found = functions.find(operand.name);
      if (found == functions.end()) throw Error("unknown name " + operand.name);
      return reinterpret_cast<u64>(found->second.get());
    }
    default: return 0;
  }
}

u64 Lane::Address(const Operand& operand) const {
  const u64 offset = static_cast<u64>(operand.imm);
  if (operand.by_register) return regs[operand.reg] + offset;
  return operand.symbol ? machine.AddressOf(frame, *operand.symbol) + offset : offset;
}

u8* Lane::Memory(const Operand& operand, unsigned bytes, Access access, const void* value) const {
  const u64 address = Address(operand);
  const Space space = operand.symbol && !operand.by_register && ins.space == Space::kGeneric
                          ? operand.symbol->space
                          : ins.space;
  if (space == Space::kParam) return frame.params + address;
  return machine.Resolve(thread, ins, address, space, bytes, access, value);
}

}  // namespace ptx
