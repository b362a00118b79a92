// One rank a thread, bytes really copied between them: for tests of what only happens with
// independent ranks, and for trainers that run their workers as threads.
//
//   auto groups = MakeThreadsGroups(4, std::chrono::seconds(10));
//   // give groups[r] to the thread of rank r
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/group.h"

namespace slimgrad {

// A call that another rank does not join within `timeout`, or whose Group has been destroyed, fails
// with kPeerLost and names the ranks that are missing. Ranks that are in different calls, or pass
// different sizes or types, all get kMismatch. After either, every call of every rank fails at once
// with the same error. A rank that has joined is waited for as long as its part of the work takes:
// the others may be reading its memory. size >= 1 (CHECKed).
std::vector<std::unique_ptr<Group>> MakeThreadsGroups(int size, std::chrono::milliseconds timeout,
                                                      Backend backend = {});

}  // namespace slimgrad
