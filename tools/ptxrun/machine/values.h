// A register's 64 bits as integers and floats.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>

#include "tools/ptxrun/ptx/types.h"

namespace ptx {

constexpr u64 ByteMask(unsigned bytes) {
  return bytes >= 8 ? ~u64{0} : (u64{1} << (8 * bytes)) - 1;
}
constexpr u64 ZeroExtend(u64 value, Type type) { return value & ByteMask(Bytes(type)); }
constexpr i64 SignExtend(u64 value, Type type) {
  const unsigned shift = 64 - Bits(type);
  return static_cast<i64>(value << shift) >> shift;
}
// As the type's signedness says.
constexpr i64 IntegerOf(u64 value, Type type) {
  return IsSigned(type) ? SignExtend(value, type) : static_cast<i64>(ZeroExtend(value, type));
}

inline float FloatOf(u64 value) { return std::bit_cast<float>(static_cast<u32>(value)); }
inline double DoubleOf(u64 value) { return std::bit_cast<double>(value); }
inline u64 BitsOf(float value) { return std::bit_cast<u32>(value); }
inline u64 BitsOf(double value) { return std::bit_cast<u64>(value); }

// Kernels work on the process's own memory, and an address is a register's value.
template <class T>
T* PointerTo(u64 address) {
  return std::bit_cast<T*>(address);
}

constexpr u32 kNanF32 = 0x7fffffff;  // the canonical one

inline float FlushSubnormal(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

// A NaN loses, and -0 is less than 0.
template <class F>
F Minimum(F x, F y) {
  if (std::isnan(x)) return y;
  if (std::isnan(y)) return x;
  return x < y || (x == y && std::signbit(x)) ? x : y;
}
template <class F>
F Maximum(F x, F y) {
  if (std::isnan(x)) return y;
  if (std::isnan(y)) return x;
  return x > y || (x == y && !std::signbit(x)) ? x : y;
}

// Comparisons of integers and of floats. `inline` makes the compiler put them into the loop of
// run.cc, where a call would cost. Of integers, T has the signedness of type and comparison.
template <class T>
inline bool Holds(Compare compare, T x, T y) {
  switch (compare) {
    case Compare::kEq: return x == y;
    case Compare::kNe: return x != y;
    case Compare::kLt:
    case Compare::kLo: return x < y;
    case Compare::kLe:
    case Compare::kLs: return x <= y;
    case Compare::kGt:
    case Compare::kHi: return x > y;
    default: return x >= y;
  }
}
template <class F>
inline bool HoldsFloat(Compare compare, F x, F y) {
  switch (compare) {
    case Compare::kEq: return x == y;
    case Compare::kNe: return x < y || x > y;
    case Compare::kLt: return x < y;
    case Compare::kLe: return x <= y;
    case Compare::kGt: return x > y;
    case Compare::kGe: return x >= y;
    case Compare::kNeu: return x != y;
    case Compare::kEqu: return !(x < y || x > y);
    case Compare::kLtu: return !(x >= y);
    case Compare::kLeu: return !(x > y);
    case Compare::kGtu: return !(x <= y);
    case Compare::kGeu: return !(x < y);
    case Compare::kNum: return !std::isnan(x) && !std::isnan(y);
    default: return std::isnan(x) || std::isnan(y);
  }
}

inline double ToInteger(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero: return std::trunc(x);
    case Rounding::kDown: return std::floor(x);
    case Rounding::kUp: return std::ceil(x);
    case Rounding::kAway: return std::round(x);
    default: return std::nearbyint(x);
  }
}

// Sets the CPU's rounding mode for its lifetime; to nearest costs nothing.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) {
    const int mode = rounding == Rounding::kZero   ? FE_TOWARDZERO
                     : rounding == Rounding::kDown ? FE_DOWNWARD
                     : rounding == Rounding::kUp   ? FE_UPWARD
                                                   : FE_TONEAREST;
    if (mode == FE_TONEAREST) return;
    old_ = std::fegetround();
    std::fesetround(mode);
  }
  ~RoundingScope() {
    if (old_ >= 0) std::fesetround(old_);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int old_ = -1;
};

}  // namespace ptx
