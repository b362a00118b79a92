// A function's instructions to the compact form that run.cc reads.
#pragma once

#include "tools/ptxrun/ptx/module.h"

namespace ptx {

// Operands become register numbers; constants get slots behind the registers. Fills fast,
// constants and slots, and every instruction's handler.
void Lower(Function& function);

}  // namespace ptx
