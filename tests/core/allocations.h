// Counts what a thread takes from the heap: for tests that steady-state calls allocate nothing.
// Linking it replaces the global operator new of the test.
#pragma once

#include <cstdint>

namespace slimgrad {

// Calls of operator new, of any form, that this thread has made.
std::uint64_t AllocationsOfThisThread();

}  // namespace slimgrad
