// Runs the same code over every kind of group.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "comm/lock_step_group.h"
#include "comm/threads_group.h"

namespace slimgrad {

enum class Kind { kLockStep, kThreads };

inline constexpr Kind kKinds[] = {Kind::kLockStep, Kind::kThreads};
inline constexpr int kWorlds[] = {1, 2, 3, 4, 5, 7};

inline const char* NameOf(Kind kind) { return kind == Kind::kLockStep ? "lock_step" : "threads"; }

// Far longer than any test takes: where it runs out, a rank was lost that should not have been.
inline constexpr std::chrono::seconds kPatience{30};

// Calls body with each group, each on a thread of its own, and waits for all.
inline void RunThreads(std::vector<std::unique_ptr<Group>>& groups,
                       const std::function<void(std::unique_ptr<Group>&)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  for (auto& group : groups) threads.emplace_back([&body, &group] { body(group); });
  for (std::thread& thread : threads) thread.join();
}

// Calls body once with a group of all ranks, or once a rank on a thread of its own.
inline void RunRanks(Kind kind, int world, const std::function<void(Group&)>& body) {
  SCOPED_TRACE(testing::Message() << NameOf(kind) << " of " << world);
  if (kind == Kind::kLockStep) {
    LockStepGroup group(world);
    body(group);
    return;
  }
  auto groups = MakeThreadsGroups(world, kPatience);
  RunThreads(groups, [&body](std::unique_ptr<Group>& group) { body(*group); });
}

}  // namespace slimgrad
