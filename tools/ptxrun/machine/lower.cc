// Lowering.
#include "tools/ptxrun/machine/lower.h"

#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

Fast Pick(bool first, Fast a, bool second, Fast b) {
  return first ? a : second ? b : Fast::kHandler;
}

// The properties of an instruction that decide whether the loop does it.
struct Shape {
  explicit Shape(const Instruction& i)
      : plain(!i.carry_out && !i.carry_in && !i.sat && !i.satfinite && !i.relu && !i.nan_wins &&
              !i.mul24 && !i.two_results),
        is_signed(IsSigned(i.type)),
        word(!IsFloat(i.type) && Bytes(i.type) == 4),
        long_word(!IsFloat(i.type) && Bytes(i.type) == 8),
        f32(plain && i.type == Type::kF32 && !i.ftz && i.rounding == Rounding::kNearest),
        f64(plain && i.type == Type::kF64 && i.rounding == Rounding::kNearest) {}
  bool plain, is_signed, word, long_word, f32, f64;
};

// One of four, by type.
Fast ByType(const Shape& shape, Fast word, Fast long_word, Fast f32, Fast f64) {
  if (!shape.plain) return Fast::kHandler;
  if (shape.word) return word;
  if (shape.long_word) return long_word;
  return Pick(shape.f32, f32, shape.f64, f64);
}

Fast OfProduct(const Instruction& i, const Shape& shape) {
  const bool mad = i.op == Op::kMad;
  if (!shape.plain) return Fast::kHandler;
  if (shape.f32) return mad ? Fast::kFmaF32 : Fast::kMulF32;
  if (shape.f64) return mad ? Fast::kHandler : Fast::kMulF64;
  if (i.wide) {
    if (!shape.word) return Fast::kHandler;
    if (mad) return shape.is_signed ? Fast::kMadWideS32 : Fast::kMadWideU32;
    return shape.is_signed ? Fast::kMulWideS32 : Fast::kMulWideU32;
  }
  if (i.hi) {
    if (!shape.word || mad) return Fast::kHandler;
    return shape.is_signed ? Fast::kMulHiS32 : Fast::kMulHiU32;
  }
  if (mad) return Pick(shape.word, Fast::kMad32, shape.long_word, Fast::kMad64);
  return Pick(shape.word, Fast::kMul32, shape.long_word, Fast::kMul64);
}

Fast OfShift(const Instruction& i, const Shape& shape) {
  const bool word = Bytes(i.type) == 4, long_word = Bytes(i.type) == 8;
  if (i.op == Op::kShl) return Pick(word, Fast::kShl32, long_word, Fast::kShl64);
  if (shape.is_signed) return Pick(word, Fast::kShrS32, long_word, Fast::kShrS64);
  return Pick(word, Fast::kShrU32, long_word, Fast::kShrU64);
}

Fast OfMinMax(const Instruction& i, const Shape& shape) {
  if (!shape.plain) return Fast::kHandler;
  if (i.op == Op::kMin)
    return Pick(shape.word, shape.is_signed ? Fast::kMinS32 : Fast::kMinU32, shape.f32,
                Fast::kMinF32);
  return Pick(shape.word, shape.is_signed ? Fast::kMaxS32 : Fast::kMaxU32, shape.f32,
              Fast::kMaxF32);
}

Fast OfComparison(const Instruction& i, const Shape& shape) {
  if (i.combine != Combine::kNone || i.two_results) return Fast::kHandler;
  const bool is_signed = shape.is_signed && !IsUnsigned(i.compare);
  if (shape.word) return is_signed ? Fast::kSetpS32 : Fast::kSetpU32;
  if (shape.long_word) return is_signed ? Fast::kSetpS64 : Fast::kSetpU64;
  return i.type == Type::kF32 && !i.ftz ? Fast::kSetpF32 : Fast::kHandler;
}

// An integer cvt is two pairs of shifts: to the source's width and to the result's.
Fast OfConversion(const Instruction& i, FastInstruction& fast) {
  if (i.sat) return Fast::kHandler;
  if (i.type == Type::kF32 && i.rounding == Rounding::kNearest)
    return Pick(i.type2 == Type::kS32, Fast::kS32ToF32, i.type2 == Type::kU32, Fast::kU32ToF32);
  if (IsFloat(i.type) || IsFloat(i.type2) || i.type == Type::kPred || i.type2 == Type::kPred ||
      Bytes(i.type) > 8 || Bytes(i.type2) > 8)
    return Fast::kHandler;
  fast.imm = static_cast<i64>((64 - Bits(i.type2)) | (64 - Bits(i.type)) << 8);
  fast.extend = static_cast<u8>((IsSigned(i.type2) ? 1 : 0) | (IsSigned(i.type) ? 2 : 0));
  return Fast::kCvtInteger;
}

Fast KindOf(const Instruction& i, FastInstruction& fast) {
  const Shape shape(i);
  const unsigned bytes = Bytes(i.type);
  const bool sign_bit = i.type == Type::kF32 && !i.ftz;
  switch (i.op) {
    case Op::kMov: return Pick(bytes == 4, Fast::kMov32, bytes == 8, Fast::kMov64);
    case Op::kAdd: return ByType(shape, Fast::kAdd32, Fast::kAdd64, Fast::kAddF32, Fast::kAddF64);
    case Op::kSub: return ByType(shape, Fast::kSub32, Fast::kSub64, Fast::kSubF32, Fast::kSubF64);
    case Op::kMul:
    case Op::kMad: return OfProduct(i, shape);
    case Op::kFma: return Pick(shape.f32, Fast::kFmaF32, shape.f64, Fast::kFmaF64);
    case Op::kAnd: return Fast::kAnd;
    case Op::kOr: return Fast::kOr;
    case Op::kXor: return Fast::kXor;
    case Op::kNot: return bytes == 4 ? Fast::kNot32 : Fast::kHandler;
    case Op::kShl:
    case Op::kShr: return OfShift(i, shape);
    case Op::kSelp: return Fast::kSelp;
    case Op::kMin:
    case Op::kMax: return OfMinMax(i, shape);
    case Op::kNeg: return sign_bit ? Fast::kNegF32 : Fast::kHandler;
    case Op::kAbs: return sign_bit ? Fast::kAbsF32 : Fast::kHandler;
    case Op::kSetp: return OfComparison(i, shape);
    case Op::kCvt: return OfConversion(i, fast);
    case Op::kPrmt: return i.modifiers.size() == 1 ? Fast::kPrmt : Fast::kHandler;
    default: return Fast::kHandler;
  }
}

std::size_t SourcesOf(Op op) {
  switch (op) {
    case Op::kMov:
    case Op::kNot:
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCvt: return 1;
    case Op::kMad:
    case Op::kFma:
    case Op::kSelp:
    case Op::kPrmt: return 3;
    default: return 2;
  }
}

class Lowering {
 public:
  explicit Lowering(Function& function) : function_(function) {
    function_.constants.clear();
    function_.slots = function_.registers;
    function_.fast.assign(function_.code.size(), FastInstruction());
  }

  void Run() {
    for (std::size_t k = 0; k < function_.code.size(); k++) {
      Instruction& ins = function_.code[k];
      ins.handler = HandlerOf(ins.op);
      FastInstruction& fast = function_.fast[k];
      fast.full = &ins;
      fast.pred = ins.pred;
      fast.pred_inverted = ins.pred_inverted;
      One(ins, fast);
    }
  }

 private:
  void One(const Instruction& i, FastInstruction& fast) {
    switch (i.op) {
      case Op::kBra:
        if (i.target < 0) return;
        fast.kind = Fast::kBra;
        fast.imm = i.target;
        return;
      case Op::kNop: fast.kind = Fast::kNop; return;
      case Op::kLd: Load(i, fast); return;
      case Op::kSt: Store(i, fast); return;
      default: Register(i, fast); return;
    }
  }

  // An operation on registers.
  void Register(const Instruction& i, FastInstruction& fast) {
    const std::size_t sources = SourcesOf(i.op);
    if (i.operands.size() != sources + 1 || !i.operands[0].IsRegister()) return;
    const Fast kind = KindOf(i, fast);
    if (kind == Fast::kHandler) return;
    if (kind >= Fast::kSetpS32 && kind <= Fast::kSetpF32) fast.n = static_cast<u8>(i.compare);
    fast.d = i.operands[0].reg;
    u32* const registers[] = {&fast.a, &fast.b, &fast.c};
    for (std::size_t k = 0; k < sources; k++)
      if (!Source(i.operands[k + 1], *registers[k])) return;
    fast.kind = kind;
  }

  void Load(const Instruction& i, FastInstruction& fast) {
    if (i.vec != 1 || Bytes(i.type) > 8 || i.operands.size() < 2) return;
    const Operand &to = i.operands[0], &from = i.operands[1];
    if (!to.IsRegister() || from.kind != Operand::Kind::kMemory) return;
    fast.d = to.reg;
    fast.n = static_cast<u8>(Bytes(i.type));
    fast.extend = IsSigned(i.type) && fast.n < 8;
    fast.imm = from.imm;
    if (from.by_register && i.space != Space::kParam) {
      fast.a = from.reg;
      fast.kind = Fast::kLd;
    } else if (!from.by_register && from.symbol && from.symbol->space == Space::kParam) {
      fast.imm += static_cast<i64>(from.symbol->offset);
      fast.kind = Fast::kLdParam;
    }
  }

  void Store(const Instruction& i, FastInstruction& fast) {
    if (i.vec != 1 || Bytes(i.type) > 8 || i.operands.size() < 2) return;
    const Operand& to = i.operands[0];
    if (to.kind != Operand::Kind::kMemory || !to.by_register || i.space == Space::kParam) return;
    if (!Source(i.operands[1], fast.b)) return;
    fast.a = to.reg;
    fast.n = static_cast<u8>(Bytes(i.type));
    fast.imm = to.imm;
    fast.kind = Fast::kSt;
  }

  // The register or slot of an operand; false if its value changes while the thread runs.
  bool Source(const Operand& operand, u32& slot) {
    if (operand.inverted) return false;
    switch (operand.kind) {
      case Operand::Kind::kRegister: slot = operand.reg; return true;
      case Operand::Kind::kImmediate:
        slot = Slot(Constant::From::kImmediate, static_cast<u64>(operand.imm), nullptr);
        return true;
      case Operand::Kind::kSpecial:
        if (static_cast<Special>(operand.reg) == Special::kClock) return false;
        slot = Slot(Constant::From::kSpecial, operand.reg, nullptr);
        return true;
      case Operand::Kind::kSymbol:
        if (operand.symbol->space == Space::kLocal || operand.symbol->space == Space::kParam ||
            operand.imm)
          return false;
        slot = Slot(Constant::From::kSymbol, 0, operand.symbol);
        return true;
      default: return false;
    }
  }

  u32 Slot(Constant::From from, u64 value, Symbol* symbol) {
    const auto key = std::make_pair(from, symbol ? reinterpret_cast<u64>(symbol) : value);
    const auto [found, is_new] = slots_.insert({key, function_.slots});
    if (is_new) function_.constants.push_back({function_.slots++, from, value, symbol});
    return found->second;
  }

  Function& function_;
  std::map<std::pair<Constant::From, u64>, u32> slots_;
};

}  // namespace

void Lower(Function& function) { Lowering(function).Run(); }

}  // namespace ptx
