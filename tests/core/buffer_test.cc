#include "core/buffer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

TEST(Buffer, IsZeroedAndAligned) {
  for (const std::size_t size : {1, 7, 64, 1001, 3 << 20}) {
    const Buffer<float> buffer(size);
    ASSERT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kBufferAlignment, 0U);
    EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(),
                            [](float x) { return x == 0 && !std::signbit(x); }));
  }
}

TEST(Buffer, OfNothingHasNoMemory) {
  const Buffer<double> made(0);
  const Buffer<double> none;
  EXPECT_EQ(made.data(), nullptr);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(made.span().empty());
}

TEST(Buffer, MovesItsMemoryAndIsThenEmpty) {
  Buffer<int> from(3);
  from.span()[2] = 7;
  const int* memory = from.data();
  Buffer<int> to = std::move(from);
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(to.span()[2], 7);
  EXPECT_EQ(from.size(), 0U);        // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_TRUE(from.span().empty());  // NOLINT(bugprone-use-after-move)

  Buffer<int> other(5);
  other = std::move(to);
  EXPECT_EQ(other.data(), memory);
  EXPECT_EQ(other.size(), 3U);
  EXPECT_EQ(to.size(), 0U);  // NOLINT(bugprone-use-after-move)
}

TEST(Buffer, FirstIsAPrefix) {
  const Buffer<int> buffer(4);
  EXPECT_EQ(buffer.first(3).size(), 3U);
  EXPECT_EQ(buffer.first(3).data(), buffer.data());
}

TEST(BufferDeathTest, RefusesMoreThanAnAddressSpace) {
  EXPECT_DEATH(Buffer<double>(SIZE_MAX / 8), "check failed");
}

}  // namespace
}  // namespace slimgrad
