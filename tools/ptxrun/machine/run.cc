// The loop over a thread's instructions. What it does itself is most of what kernels execute;
// handlers in exec_*.cc do the rest.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

u64 LoadBytes(const u8* from, unsigned bytes, bool extend) {
  u64 value = 0;
  switch (bytes) {
    case 1: value = *from; break;
    case 2: {
      u16 half = 0;
      std::memcpy(&half, from, 2);
      value = half;
      break;
    }
    case 4: {
      u32 word = 0;
      std::memcpy(&word, from, 4);
      value = word;
      break;
    }
    default: std::memcpy(&value, from, 8);
  }
  if (!extend) return value;
  const unsigned shift = 64 - 8 * bytes;
  return static_cast<u64>(static_cast<i64>(value << shift) >> shift);
}

void StoreBytes(u8* to, unsigned bytes, u64 value) {
  switch (bytes) {
    case 1: *to = static_cast<u8>(value); break;
    case 2: std::memcpy(to, &value, 2); break;
    case 4: std::memcpy(to, &value, 4); break;
    default: std::memcpy(to, &value, 8);
  }
}

u64 ConvertInteger(u64 value, const FastInstruction& f) {
  const unsigned from = static_cast<unsigned>(f.imm) & 63;
  const unsigned to = static_cast<unsigned>(f.imm >> 8) & 63;
  value <<= from;
  value = (f.extend & 1) != 0 ? static_cast<u64>(static_cast<i64>(value) >> from) : value >> from;
  value <<= to;
  return (f.extend & 2) != 0 ? static_cast<u64>(static_cast<i64>(value) >> to) : value >> to;
}

Compare CompareOf(const FastInstruction& f) { return static_cast<Compare>(f.n); }

u64 CanonicalBits(float value) { return value == value ? BitsOf(value) : kNanF32; }

i64 SignedProduct(u32 a, u32 b) {
  return static_cast<i64>(static_cast<std::int32_t>(a)) * static_cast<std::int32_t>(b);
}

}  // namespace

// The names of the loop's operands, by type.
#define A32 static_cast<u32>(regs[f.a])
#define B32 static_cast<u32>(regs[f.b])
#define C32 static_cast<u32>(regs[f.c])
#define A64 regs[f.a]
#define B64 regs[f.b]
#define C64 regs[f.c]
#define SA32 static_cast<std::int32_t>(regs[f.a])
#define SB32 static_cast<std::int32_t>(regs[f.b])
#define SA64 static_cast<i64>(regs[f.a])
#define SB64 static_cast<i64>(regs[f.b])
#define FA FloatOf(regs[f.a])
#define FB FloatOf(regs[f.b])
#define FC FloatOf(regs[f.c])
#define DA DoubleOf(regs[f.a])
#define DB DoubleOf(regs[f.b])
#define DC DoubleOf(regs[f.c])
#define PTX_OP(kind, value) \
  case Fast::kind: regs[f.d] = (value); continue;

// One switch, since a call an instruction would halve the speed.
void Machine::RunThread(Thread& thread, int budget) {  // NOLINT(readability-function-size)
  Frame* frame = &thread.frames.back();
  u64* regs = thread.regs.data() + frame->first_register;
  const FastInstruction* code = frame->function->fast.data();
  int pc = frame->pc;

  // Most accesses are aligned, and in the range of the one before.
  const auto memory = [&](const FastInstruction& f, Access access, const void* value) -> u8* {
    const u64 address = regs[f.a] + static_cast<u64>(f.imm);
    const Space space = f.full->space;
    const Window& window = windows_[recent_];
    if ((space == Space::kGlobal || space == Space::kGeneric) && (address & (f.n - 1U)) == 0 &&
        address >= window.begin && address + f.n <= window.end)
      return PointerTo<u8>(address);
    return Resolve(thread, *f.full, address, space, f.n, access, value);
  };

  while (budget-- > 0) {
    const FastInstruction& f = code[pc++];
    instructions++;
    if (f.pred >= 0 && ((regs[f.pred] & 1) != 0) == f.pred_inverted) continue;
    if (options.stats) histogram[f.full->text]++;
    switch (f.kind) {
      case Fast::kHandler: break;
      case Fast::kNop:
        continue;
        PTX_OP(kMov32, A32)
        PTX_OP(kMov64, A64)
        PTX_OP(kAdd32, A32 + B32)
        PTX_OP(kAdd64, A64 + B64)
        PTX_OP(kSub32, A32 - B32)
        PTX_OP(kSub64, A64 - B64)
        PTX_OP(kMul32, u32{A32 * B32})
        PTX_OP(kMul64, A64 * B64)
        PTX_OP(kMad32, A32 * B32 + C32)
        PTX_OP(kMad64, A64 * B64 + C64)
        PTX_OP(kMulWideS32, static_cast<u64>(SignedProduct(A32, B32)))
        PTX_OP(kMulWideU32, u64{A32} * B32)
        PTX_OP(kMadWideS32, static_cast<u64>(SignedProduct(A32, B32)) + C64)
        PTX_OP(kMadWideU32, u64{A32} * B32 + C64)
        PTX_OP(kMulHiS32, static_cast<u32>(static_cast<u64>(SignedProduct(A32, B32)) >> 32))
        PTX_OP(kMulHiU32, u64{A32} * B32 >> 32)
        PTX_OP(kAnd, A64 & B64)
        PTX_OP(kOr, A64 | B64)
        PTX_OP(kXor, A64 ^ B64)
        PTX_OP(kNot32, ~A32)
        PTX_OP(kShl32, B32 > 31 ? 0 : A32 << B32)
        PTX_OP(kShl64, B32 > 63 ? 0 : A64 << B32)
        PTX_OP(kShrU32, B32 > 31 ? 0 : A32 >> B32)
        PTX_OP(kShrU64, B32 > 63 ? 0 : A64 >> B32)
        PTX_OP(kShrS32, static_cast<u32>(SA32 >> std::min(B32, 31U)))
        PTX_OP(kShrS64, static_cast<u64>(SA64 >> std::min(B32, 63U)))
        PTX_OP(kSelp, (C64 & 1) != 0 ? A64 : B64)
        PTX_OP(kMinS32, SA32 < SB32 ? A32 : B32)
        PTX_OP(kMaxS32, SA32 > SB32 ? A32 : B32)
        PTX_OP(kMinU32, std::min(A32, B32))
        PTX_OP(kMaxU32, std::max(A32, B32))
        PTX_OP(kNegF32, A32 ^ 0x80000000U)
        PTX_OP(kAbsF32, A32 & 0x7fffffffU)
        PTX_OP(kS32ToF32, BitsOf(static_cast<float>(SA32)))
        PTX_OP(kU32ToF32, BitsOf(static_cast<float>(A32)))
        PTX_OP(kAddF32, CanonicalBits(FA + FB))
        PTX_OP(kSubF32, CanonicalBits(FA - FB))
        PTX_OP(kMulF32, CanonicalBits(FA * FB))
        PTX_OP(kFmaF32, CanonicalBits(std::fma(FA, FB, FC)))
        PTX_OP(kMinF32, CanonicalBits(Minimum(FA, FB)))
        PTX_OP(kMaxF32, CanonicalBits(Maximum(FA, FB)))
        PTX_OP(kAddF64, BitsOf(DA + DB))
        PTX_OP(kSubF64, BitsOf(DA - DB))
        PTX_OP(kMulF64, BitsOf(DA * DB))
        PTX_OP(kFmaF64, BitsOf(std::fma(DA, DB, DC)))
        PTX_OP(kSetpS32, Holds(CompareOf(f), SA32, SB32))
        PTX_OP(kSetpU32, Holds(CompareOf(f), A32, B32))
        PTX_OP(kSetpS64, Holds(CompareOf(f), SA64, SB64))
        PTX_OP(kSetpU64, Holds(CompareOf(f), A64, B64))
        PTX_OP(kSetpF32, HoldsFloat(CompareOf(f), FA, FB))
        PTX_OP(kCvtInteger, ConvertInteger(A64, f))
        PTX_OP(kPrmt, PermuteBytes(B64 << 32 | A32, C32))
        PTX_OP(kLdParam, LoadBytes(frame->params + f.imm, f.n, f.extend != 0))
        PTX_OP(kLd, LoadBytes(memory(f, Access::kRead, nullptr), f.n, f.extend != 0))
      case Fast::kSt: {
        const u64 value = B64;
        StoreBytes(memory(f, Access::kWrite, &value), f.n, value);
        continue;
      }
      case Fast::kBra: pc = static_cast<int>(f.imm); continue;
    }

    frame->pc = pc;
    Lane lane{*this, thread, *frame, regs, *f.full};
    switch (f.full->handler(lane)) {
      case Flow::kNext: break;
      case Flow::kJump:
        frame = &thread.frames.back();
        regs = thread.regs.data() + frame->first_register;
        code = frame->function->fast.data();
        pc = frame->pc;
        break;
      case Flow::kStop: return;
    }
  }
  frame->pc = pc;
}

}  // namespace ptx
