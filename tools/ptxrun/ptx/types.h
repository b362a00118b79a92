// The words of PTX: types, state spaces, operations, comparisons and special registers.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// What stops a parse or a kernel; the text is for the user.
struct Error : std::runtime_error {
  using runtime_error::runtime_error;
};

// In this order because IsSigned and IsFloat are ranges.
enum class Type : u8 {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kE4m3x2,
  kE5m2x2,
  kS16x2,
  kU16x2
};

constexpr unsigned Bytes(Type type) {
  switch (type) {
    case Type::kPred:
    case Type::kB8:
    case Type::kU8:
    case Type::kS8: return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBf16:
    case Type::kE4m3x2:
    case Type::kE5m2x2: return 2;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64: return 8;
    case Type::kB128: return 16;
    default: return 4;
  }
}

constexpr unsigned Bits(Type type) { return 8 * Bytes(type); }
constexpr bool IsSigned(Type type) { return type >= Type::kS8 && type <= Type::kS64; }
// Also the packed pairs, of integers too: everything that the integer operations do not handle.
constexpr bool IsFloat(Type type) { return type >= Type::kF16; }
constexpr bool IsFp8Pair(Type type) { return type == Type::kE4m3x2 || type == Type::kE5m2x2; }
constexpr bool IsHalfPair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }
constexpr bool IsHalf(Type type) { return type == Type::kF16 || type == Type::kBf16; }
constexpr bool IsIntegerPair(Type type) { return type == Type::kS16x2 || type == Type::kU16x2; }

enum class Space : u8 { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

enum class Op : u8 {
  kUnsupported,
  // moves
  kMov,
  kLd,
  kSt,
  kCvta,
  kCvt,
  kSelp,
  kSlct,
  kIsspacep,
  // arithmetic of integers and floats
  kAdd,
  kSub,
  kMul,
  kMad,
  kFma,
  kDiv,
  kRem,
  kAbs,
  kNeg,
  kMin,
  kMax,
  // floats alone
  kCopysign,
  kRcp,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kLg2,
  kEx2,
  kTanh,
  kTestp,
  // bits and integers
  kAnd,
  kOr,
  kXor,
  kNot,
  kCnot,
  kShl,
  kShr,
  kShf,
  kBfe,
  kBfi,
  kBfind,
  kBmsk,
  kClz,
  kPopc,
  kBrev,
  kPrmt,
  kLop3,
  kDp4a,
  kSad,
  kFns,
  kSimd,
  // comparisons
  kSetp,
  kSet,
  // control
  kBra,
  kBrx,
  kCall,
  kRet,
  kExit,
  kTrap,
  kNop,
  kSleep,
  // barriers and copies that arrive later
  kBar,
  kWarpBar,
  kFence,
  kMbarrier,
  kCpAsync,
  kCpBulk,
  // between the lanes of a warp
  kShfl,
  kVote,
  kMatch,
  kRedux,
  kActivemask,
  kElect,
  // atomics
  kAtom,
  kRed
};

enum class Compare : u8 {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  // unsigned, whatever the type
  kLo,
  kLs,
  kHi,
  kHs,
  // true with a NaN
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};

constexpr bool IsUnsigned(Compare compare) {
  return compare >= Compare::kLo && compare <= Compare::kHs;
}

// kInteger is .rni: to an integer, to nearest even.
enum class Rounding : u8 { kNearest, kZero, kDown, kUp, kInteger, kAway };

enum class Combine : u8 { kNone, kAnd, kOr, kXor };

enum class WarpMode : u8 {
  kNone,
  kUp,
  kDown,
  kBfly,
  kIdx,
  kBallot,
  kAny,
  kAll,
  kUni,
  kAdd,
  kAnd,
  kOr,
  kXor,
  kMin,
  kMax
};

enum class Atomic : u8 { kNone, kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };

enum class Mbarrier : u8 {
  kNone,
  kInit,
  kInval,
  kArrive,
  kArriveExpectTx,
  kExpectTx,
  kTestWait,
  kTryWait
};

enum class Simd : u8 { kAdd, kSub, kAbsdiff, kMin, kMax };

enum class Special : u8 {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kWarpSize,
  kClock,
  kSmid,
  kNsmid,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kGridid,
  kDynamicSmemSize,
  kTotalSmemSize,
  kZero,
  kOne,
  kEnvreg1,
  kEnvreg2
};

}  // namespace ptx
