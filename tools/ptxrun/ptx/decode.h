// An instruction's dotted name ("mad.wide.s32") to what it does.
#pragma once

#include <string>

#include "tools/ptxrun/ptx/module.h"

namespace ptx {

// Fills everything but the operands. A name with any part that is unsupported becomes
// Op::kUnsupported: a kernel that reaches it stops, since a wrong result would be worse.
void Decode(const std::string& opcode, Instruction& i);

}  // namespace ptx
