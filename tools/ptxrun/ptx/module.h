// What the parser makes of a program's PTX: modules, functions, instructions, symbols.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/ptxrun/ptx/types.h"

namespace ptx {

struct Function;
struct Module;
struct Lane;
enum class Flow : u8;
using Handler = Flow (*)(Lane&);

// Marks the offset of an entry's own shared variable: it lies behind the module's, whose size is
// known only at the end.
constexpr u64 kEntryShared = u64{1} << 40;

// A variable, an array or a parameter.
struct Symbol {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  u64 size = 0, align = 1;  // in bytes
  u64 offset = 0;           // in its space
  bool dynamic = false;     // extern __shared__: behind everything else
  // Global and constant memory has one copy a device, `stride` bytes apart.
  u64 stride = 0;
  u8* host = nullptr;
  std::vector<u8> init;
  std::vector<std::pair<u64, std::string>> relocations;  // where in init whose address is added
};

struct Operand {
  enum class Kind : u8 {
    kNone,
    kRegister,
    kImmediate,
    kSymbol,
    kSpecial,
    kVector,
    kMemory,
    kLabel
  };
  Kind kind = Kind::kNone;
  bool inverted = false;     // !p
  bool by_register = false;  // an address: in a register, not in a symbol
  u32 reg = 0;
  i64 imm = 0;
  Symbol* symbol = nullptr;
  std::string name;
  std::vector<Operand> parts;

  bool IsRegister() const { return kind == Kind::kRegister; }
  bool IsVector() const { return kind == Kind::kVector; }
};

struct Instruction {
  Op op = Op::kUnsupported;
  Type type = Type::kNone, type2 = Type::kNone;  // the first and the second that it names
  Space space = Space::kGeneric;
  Compare compare = Compare::kEq;
  Combine combine = Combine::kNone;
  Rounding rounding = Rounding::kNearest;
  WarpMode warp_mode = WarpMode::kNone;
  Atomic atomic = Atomic::kNone;
  Mbarrier mbarrier = Mbarrier::kNone;
  Simd simd = Simd::kAdd;
  u8 simd_lanes = 0;  // of vadd2 and its like
  u8 vec = 1;
  bool ftz = false, sat = false, satfinite = false, relu = false, abs = false;
  bool nan_wins = false;          // min.NaN
  bool hi = false, wide = false;  // which half of a product
  bool mul24 = false;             // mul24 and mad24
  bool accumulate = false;        // vadd2.add
  bool clamp = false;             // shf.clamp
  bool carry_out = false, carry_in = false;
  bool to = false;  // cvta.to
  bool is_volatile = false, acquire = false;
  bool two_results = false;  // d|p
  int pred = -1;
  bool pred_inverted = false;
  std::vector<Operand> operands;
  int target = -1;
  Function* callee = nullptr;
  Handler handler = nullptr;
  int line = 0;
  std::string text;
  std::vector<std::string> modifiers;

  bool Has(const char* modifier) const {
    for (const std::string& each : modifiers)
      if (each == modifier) return true;
    return false;
  }
};

// What the interpreter's loop does itself; everything else is for Instruction::handler.
enum class Fast : u8 {
  kHandler,
  kNop,
  kMov32,
  kMov64,
  kAdd32,
  kAdd64,
  kSub32,
  kSub64,
  kMul32,
  kMul64,
  kMad32,
  kMad64,
  kMulWideS32,
  kMulWideU32,
  kMadWideS32,
  kMadWideU32,
  kMulHiS32,
  kMulHiU32,
  kAnd,
  kOr,
  kXor,
  kNot32,
  kShl32,
  kShl64,
  kShrU32,
  kShrU64,
  kShrS32,
  kShrS64,
  kSelp,
  kMinS32,
  kMaxS32,
  kMinU32,
  kMaxU32,
  kNegF32,
  kAbsF32,
  kS32ToF32,
  kU32ToF32,
  kAddF32,
  kSubF32,
  kMulF32,
  kFmaF32,
  kMinF32,
  kMaxF32,
  kAddF64,
  kSubF64,
  kMulF64,
  kFmaF64,
  kSetpS32,
  kSetpU32,
  kSetpS64,
  kSetpU64,
  kSetpF32,
  kCvtInteger,
  kPrmt,
  kBra,
  kLdParam,
  kLd,
  kSt
};

// The compact form that the interpreter's loop reads: register numbers only, since constants lie
// behind the registers.
struct FastInstruction {
  Fast kind = Fast::kHandler;
  bool pred_inverted = false;
  u8 n = 0;       // bytes of a load or store; a setp's Compare
  u8 extend = 0;  // a load: sign-extend; a cvt: bit 0 the source, bit 1 the result
  int pred = -1;
  u32 d = 0, a = 0, b = 0, c = 0;
  i64 imm = 0;
  const Instruction* full = nullptr;
};

// What lies in a slot behind the registers.
struct Constant {
  enum class From : u8 { kImmediate, kSpecial, kSymbol };
  u32 slot = 0;
  From from = From::kImmediate;
  u64 value = 0;  // kSpecial: which
  Symbol* symbol = nullptr;
};

struct Function {
  std::string name;
  bool entry = false, defined = false, cluster = false;
  Module* module = nullptr;
  std::vector<Symbol*> params, rets;
  std::vector<Instruction> code;
  std::map<std::string, int> labels;
  std::map<std::string, std::vector<std::string>> targets;  // .branchtargets
  u32 registers = 0;
  u64 shared_bytes = 0, local_bytes = 0, param_bytes = 0;
  int max_threads = 1024;
  // from Lower
  std::vector<FastInstruction> fast;
  std::vector<Constant> constants;
  u32 slots = 0;  // registers and constants
  // from the runtime
  int max_dynamic_shared_bytes = -1;  // dynamic shared memory that the program has asked for
  u64 static_shared_bytes = 0;        // static shared memory, the module's included

  u64 ArgumentBytes() const {
    return params.empty() ? 0 : params.back()->offset + params.back()->size;
  }
};

struct Module {
  std::vector<std::unique_ptr<Symbol>> symbols;
  std::map<std::string, Symbol*> globals;
  std::map<std::string, std::unique_ptr<Function>> functions;
  int sm = 75;
  u64 shared_bytes = 0;
  bool has_local = false;
};

constexpr u64 RoundUp(u64 offset, u64 align) { return (offset + align - 1) / align * align; }

}  // namespace ptx
