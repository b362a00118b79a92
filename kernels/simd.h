// Which instructions the cpu kernels run on. They are compiled for several sets, and the best one
// that the machine has is picked at run time; results are the same bits for all of them.
//
//   x86-64: "sse4", "avx2", "avx512" (F, BW, CD, DQ, VL); SSE 4.2 is the least that is needed
//   Arm:    "neon"
#pragma once

#include <string_view>
#include <vector>

namespace slimgrad::kernels {

// Those that this machine has, the least first.
std::vector<std::string_view> SimdLevels();

// The one that is in use.
std::string_view SimdLevel();

// For tests and benchmarks: takes the named one from now on, in the whole process; "" takes the
// best again. False, with nothing changed, where this machine has it not. Not while a kernel runs.
bool ForceSimdLevel(std::string_view name);

}  // namespace slimgrad::kernels
