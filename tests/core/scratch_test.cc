#include "core/scratch.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tests/core/allocations.h"

namespace slimgrad {
namespace {

void Fill(std::span<std::byte> memory, int value) {
  if (!memory.empty()) std::memset(memory.data(), value, memory.size());
}

bool Holds(std::span<const std::byte> memory, int value) {
  for (const std::byte byte : memory)
    if (byte != std::byte(value)) return false;
  return true;
}

TEST(Scratch, HandsOutAlignedMemory) {
  Scratch scratch;
  ScratchScope scope(scratch);
  for (const std::size_t bytes : {1, 63, 64, 65, 1000}) {
    const std::span<std::byte> memory = scope.Take(bytes);
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % kBufferAlignment, 0U);
  }
  EXPECT_TRUE(scope.Take(0).empty());
}

TEST(Scratch, HandsOutElements) {
  Scratch scratch;
  ScratchScope scope(scratch);
  const std::span<double> first = scope.Take<double>(9);
  EXPECT_EQ(first.size(), 9U);
  Fill(std::as_writable_bytes(first), 1);
  Fill(std::as_writable_bytes(scope.Take<double>(9)), 2);
  EXPECT_TRUE(Holds(std::as_bytes(first), 1));
  EXPECT_TRUE(scope.Take<float>(0).empty());
}

TEST(Scratch, GrowthLeavesWhatIsTakenInPlace) {
  Scratch scratch;
  ScratchScope scope(scratch);
  std::vector<std::span<std::byte>> taken;
  for (int i = 0; i < 100; ++i) {
    taken.push_back(scope.Take(static_cast<std::size_t>(i * i)));
    Fill(taken.back(), i);
  }
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Holds(taken[static_cast<std::size_t>(i)], i)) << i;
}

TEST(Scratch, AnInnerScopeGivesBackOnlyItsOwn) {
  Scratch scratch;
  ScratchScope outer(scratch);
  const std::span<std::byte> kept = outer.Take(100);
  Fill(kept, 1);
  const std::byte* reused = nullptr;
  for (int turn = 0; turn < 3; ++turn) {
    ScratchScope inner(scratch);
    const std::span<std::byte> small = inner.Take(10), large = inner.Take(5000);
    Fill(small, 2);
    Fill(large, 3);
    EXPECT_TRUE(Holds(small, 2));
    EXPECT_TRUE(Holds(kept, 1));
    if (turn > 0) {
      EXPECT_EQ(large.data(), reused);
    }
    reused = large.data();
  }
  Fill(outer.Take(10), 4);  // lies where the inner scope's did, not on `kept`
  EXPECT_TRUE(Holds(kept, 1));
}

// What one step of a nest of methods asks for.
void Step(Scratch& scratch, std::size_t n) {
  ScratchScope outer(scratch);
  Fill(outer.Take(n), 1);
  {
    ScratchScope inner(scratch);
    Fill(inner.Take(4 * n), 2);
    Fill(inner.Take(n / 2), 3);
  }
  Fill(outer.Take(2 * n), 4);
}

TEST(Scratch, SteadyStepsAllocateNothing) {
  Scratch scratch;
  const std::vector<std::size_t> sizes = {1000, 3, 70000, 64, 0, 512};
  const std::uint64_t before_any = AllocationsOfThisThread();
  for (int warm_up = 0; warm_up < 3; ++warm_up)
    for (const std::size_t n : sizes) Step(scratch, n);
  const std::uint64_t before = AllocationsOfThisThread();
  EXPECT_GT(before, before_any);  // the counter counts
  for (int step = 0; step < 10; ++step)
    for (const std::size_t n : sizes) Step(scratch, n);
  EXPECT_EQ(AllocationsOfThisThread(), before);
}

TEST(ScratchDeathTest, RefusesMoreThanAnAddressSpace) {
  Scratch scratch;
  ScratchScope scope(scratch);
  EXPECT_DEATH(static_cast<void>(scope.Take(SIZE_MAX)), "check failed");
}

}  // namespace
}  // namespace slimgrad
