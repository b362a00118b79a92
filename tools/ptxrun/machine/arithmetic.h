// What arithmetic instructions compute, from values to a value: no thread, no memory.
#pragma once

#include "tools/ptxrun/ptx/module.h"

namespace ptx {

// Addition, multiplication, minimum, functions and bitwise operations of any type; operands that
// the operation lacks are ignored. `op` and `type` are not always the instruction's own: an atomic
// adds, a packed pair is done in halves. Its flags (rounding, ftz, sat, ...) apply.
u64 Arithmetic(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c);

u64 FloatArithmetic(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c);
u64 IntegerArithmetic(const Instruction& i, Op op, Type type, u64 a, u64 b, u64 c);

bool IsTrue(Compare compare, Type type, u64 a, u64 b, bool ftz);

// cvt; b is the second source of cvt.f16x2.f32 and its like.
u64 Convert(const Instruction& i, u64 a, u64 b);

u32 PermuteBytes(u64 bytes, u32 selector);  // prmt

}  // namespace ptx
