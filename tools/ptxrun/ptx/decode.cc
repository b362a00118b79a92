// Names to instructions: first every modifier is read, then what is unsupported is refused.
#include "tools/ptxrun/ptx/decode.h"

#include <cctype>

#include "tools/ptxrun/ptx/names.h"

namespace ptx {
namespace {

std::vector<std::string> Split(const std::string& opcode) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (;;) {
    const std::size_t dot = opcode.find('.', from);
    parts.push_back(opcode.substr(from, dot == std::string::npos ? dot : dot - from));
    if (dot == std::string::npos) return parts;
    from = dot + 1;
  }
}

std::string BeforeColon(const std::string& modifier) {
  return modifier.substr(0, modifier.find(':'));
}

bool IsComparison(Op op) { return op == Op::kSetp || op == Op::kSet; }
bool IsAtomic(Op op) { return op == Op::kAtom || op == Op::kRed; }
bool IsMinMax(Op op) { return op == Op::kMin || op == Op::kMax; }

void ReadComparison(const std::string& modifier, Instruction& i) {
  if (const auto compare = CompareNamed(modifier)) i.compare = *compare;
  if (modifier == "and") i.combine = Combine::kAnd;
  if (modifier == "or") i.combine = Combine::kOr;
  if (modifier == "xor") i.combine = Combine::kXor;
}

void ReadMemoryOrder(const std::string& modifier, Instruction& i) {
  if (modifier == "acquire" || modifier == "acq_rel" || modifier == "sc") i.acquire = true;
  if (modifier == "volatile" || modifier == "relaxed" || modifier == "acquire" ||
      modifier == "release" || modifier == "mmio")
    i.is_volatile = true;
}

void ReadFlag(const std::string& modifier, Instruction& i) {
  const std::pair<const char*, bool*> flags[] = {
      {"ftz", &i.ftz}, {"sat", &i.sat},   {"satfinite", &i.satfinite}, {"NaN", &i.nan_wins},
      {"abs", &i.abs}, {"hi", &i.hi},     {"wide", &i.wide},           {"cc", &i.carry_out},
      {"to", &i.to},   {"relu", &i.relu}, {"clamp", &i.clamp},
  };
  for (const auto& [name, flag] : flags)
    if (modifier == name) *flag = true;
  if (modifier == "v2") i.vec = 2;
  if (modifier == "v4") i.vec = 4;
  if (modifier == "v8") i.vec = 8;
}

void ReadModifiers(Instruction& i) {
  for (const std::string& modifier : i.modifiers) {
    const Type type = TypeNamed(modifier);
    if (type != Type::kNone) {
      (i.type == Type::kNone ? i.type : i.type2) = type;
      continue;
    }
    if (IsComparison(i.op)) {
      ReadComparison(modifier, i);
      if (CompareNamed(modifier)) continue;  // .hi is a comparison here
    }
    if (i.space == Space::kGeneric) i.space = SpaceNamed(BeforeColon(modifier));
    if (const auto rounding = RoundingNamed(modifier)) i.rounding = *rounding;
    ReadMemoryOrder(modifier, i);
    ReadFlag(modifier, i);
  }
}

bool IsKnown(const std::string& modifier, const Instruction& i) {
  if (TypeNamed(modifier) != Type::kNone || IsKnownModifier(BeforeColon(modifier))) return true;
  if (IsComparison(i.op) && CompareNamed(modifier)) return true;
  if (modifier.rfind("L1:", 0) == 0 || modifier.rfind("L2:", 0) == 0) return true;  // cache hints
  // prmt.b32.f4e and its like have a handler that refuses them by name
  return i.op == Op::kPrmt && modifier.size() == 4 && modifier[0] == 'b' &&
         std::isdigit(static_cast<unsigned char>(modifier[1]));
}

void RefuseUnknownModifiers(Instruction& i) {
  if (i.op == Op::kNop || i.op == Op::kFence) return;
  for (const std::string& modifier : i.modifiers)
    if (!IsKnown(modifier, i)) i.op = Op::kUnsupported;
}

// vadd2, vabsdiff4, ...: lanes within a word, with three types
void ReadSimd(const std::string& name, Instruction& i) {
  static const std::pair<const char*, Simd> kinds[] = {{"vadd", Simd::kAdd},
                                                       {"vsub", Simd::kSub},
                                                       {"vabsdiff", Simd::kAbsdiff},
                                                       {"vmin", Simd::kMin},
                                                       {"vmax", Simd::kMax}};
  if (name.empty() || (name.back() != '2' && name.back() != '4')) return;
  for (const auto& [word, kind] : kinds) {
    if (name.compare(0, name.size() - 1, word) != 0) continue;
    std::vector<Type> types;
    for (const std::string& modifier : i.modifiers) {
      const Type type = TypeNamed(modifier);
      if (type == Type::kU32 || type == Type::kS32)
        types.push_back(type);
      else if (modifier == "add")
        i.accumulate = true;
      else if (modifier != "sat")
        return;
    }
    if (types.size() != 3 || types[1] != types[2]) return;
    i.op = Op::kSimd;
    i.simd = kind;
    i.simd_lanes = static_cast<u8>(name.back() - '0');
  }
}

void ReadWarpMode(Instruction& i) {
  for (const std::string& modifier : i.modifiers) {
    if (i.warp_mode != WarpMode::kNone) break;
    i.warp_mode = WarpModeNamed(modifier).value_or(WarpMode::kNone);
  }
  // the forms without .sync are gone since sm_70
  if (i.warp_mode == WarpMode::kNone || !i.Has("sync") || i.abs || i.nan_wins || IsFloat(i.type))
    i.op = Op::kUnsupported;
}

bool CvtIsSupported(const Instruction& i) {
  if (i.type == Type::kNone || i.type2 == Type::kNone) return false;
  const bool to_fp8 = IsFp8Pair(i.type), from_fp8 = IsFp8Pair(i.type2);
  if (to_fp8 && (!i.satfinite || i.rounding != Rounding::kNearest ||
                 (i.type2 != Type::kF32 && i.type2 != Type::kF16x2)))
    return false;
  if (from_fp8 && i.type != Type::kF16x2) return false;
  if (i.satfinite && !to_fp8 && !IsHalf(i.type) && !IsHalfPair(i.type)) return false;
  if (IsHalfPair(i.type) && i.type2 != Type::kF32 && !from_fp8) return false;
  return !IsHalfPair(i.type2) || to_fp8;
}

// Forms with a second type that mix precisions.
bool IsMixed(const Instruction& i) {
  switch (i.op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kFma:
    case Op::kMad:
    case Op::kMin:
    case Op::kMax:
    case Op::kAtom:
    case Op::kRed:
    case Op::kLd:
    case Op::kSt: return i.type2 != Type::kNone;
    default: return false;
  }
}

bool IsFloatOnly(Op op) {
  return op == Op::kRcp || op == Op::kSqrt || op == Op::kRsqrt || op == Op::kSin ||
         op == Op::kCos || op == Op::kLg2;
}

bool IsSupported(const Instruction& i) {
  if (i.op == Op::kCvt && !CvtIsSupported(i)) return false;
  if (i.op != Op::kCvt && (i.satfinite || IsFp8Pair(i.type))) return false;
  if (i.abs || i.Has("xorsign") || (i.nan_wins && !IsMinMax(i.op))) return false;
  if (IsMixed(i)) return false;
  if ((i.op == Op::kLd || i.op == Op::kSt || i.op == Op::kRed) && i.Has("async")) return false;
  if (IsAtomic(i.op) && i.type == Type::kB128)
    return i.op == Op::kAtom && (i.Has("exch") || i.Has("cas"));
  if (IsFloatOnly(i.op) && i.type != Type::kF32 && i.type != Type::kF64) return false;
  if (i.op == Op::kDiv && IsHalf(i.type)) return false;
  if (IsIntegerPair(i.type) && ((i.op != Op::kAdd && !IsMinMax(i.op)) || i.sat || i.carry_out))
    return false;
  return !((i.op == Op::kShr || i.op == Op::kShl) && IsFloat(i.type));
}

// The one bulk copy that CUB uses: global to this block's shared memory, counted by an mbarrier.
void ReadBulkCopy(Instruction& i) {
  const auto& modifiers = i.modifiers;
  const bool known = modifiers.size() == 5 && modifiers[0] == "async" && modifiers[1] == "bulk" &&
                     (modifiers[2] == "shared::cluster" || modifiers[2] == "shared::cta") &&
                     modifiers[3] == "global" && modifiers[4] == "mbarrier::complete_tx::bytes";
  i.op = known ? Op::kCpBulk : Op::kUnsupported;
}

// The forms for a barrier of one block.
void ReadMbarrier(Instruction& i) {
  const auto kind = i.modifiers.empty() ? std::nullopt : MbarrierNamed(i.modifiers[0]);
  i.op = kind ? Op::kMbarrier : Op::kUnsupported;
  i.mbarrier = kind.value_or(Mbarrier::kNone);
  for (std::size_t k = 1; k < i.modifiers.size(); k++) {
    const std::string& word = i.modifiers[k];
    if (word == "expect_tx" && i.mbarrier == Mbarrier::kArrive)
      i.mbarrier = Mbarrier::kArriveExpectTx;
    else if (word != "parity" && word != "shared" && word != "shared::cta" && word != "b64" &&
             word != "release" && word != "acquire" && word != "relaxed" && word != "cta" &&
             word != "cluster")
      i.op = Op::kUnsupported;
  }
}

}  // namespace

void Decode(const std::string& opcode, Instruction& i) {
  i.text = opcode;
  i.modifiers = Split(opcode);
  const std::string name = i.modifiers.front();
  i.modifiers.erase(i.modifiers.begin());
  i.op = OpNamed(name);
  i.mul24 = name == "mul24" || name == "mad24";
  i.carry_in = name == "addc" || name == "subc" || name == "madc";
  if (i.mul24 && i.Has("hi")) i.op = Op::kUnsupported;
  ReadModifiers(i);

  if (i.op == Op::kBar && !i.modifiers.empty()) {
    if (i.modifiers[0] == "warp") i.op = Op::kWarpBar;
    // a block is a cluster of its own
    if (name == "barrier" && i.modifiers[0] == "cluster") i.op = Op::kNop;
  }
  RefuseUnknownModifiers(i);
  ReadSimd(name, i);
  if (i.op == Op::kShfl || i.op == Op::kVote || i.op == Op::kMatch || i.op == Op::kRedux)
    ReadWarpMode(i);
  if (!IsSupported(i)) i.op = Op::kUnsupported;
  if (name == "cp" && i.Has("bulk")) ReadBulkCopy(i);
  if (name == "mbarrier") ReadMbarrier(i);
  if (IsAtomic(i.op)) {
    for (const std::string& modifier : i.modifiers)
      if (const auto kind = AtomicNamed(modifier)) i.atomic = *kind;
  }
}

}  // namespace ptx
