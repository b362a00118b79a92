#include "kernels/simd.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace slimgrad::kernels {
namespace {

TEST(SimdTest, TheBestOfTheMachineIsInUse) {
  ASSERT_FALSE(SimdLevels().empty());
  EXPECT_EQ(SimdLevel(), SimdLevels().back());
}

TEST(SimdTest, EachLevelCanBeForcedAndTheBestComesBack) {
  const auto levels = SimdLevels();
  for (std::string_view level : levels) {
    EXPECT_TRUE(ForceSimdLevel(level));
    EXPECT_EQ(SimdLevel(), level);
    EXPECT_EQ(SimdLevels(), levels) << "what the machine has does not change";
  }
  EXPECT_TRUE(ForceSimdLevel(levels.front()));
  EXPECT_TRUE(ForceSimdLevel(""));
  EXPECT_EQ(SimdLevel(), levels.back());
}

TEST(SimdTest, WhatTheMachineHasNotIsRefused) {
  for (std::string_view level : {"mmx", "AVX2", "neon and sse4"}) {
    EXPECT_FALSE(ForceSimdLevel(level));
    EXPECT_EQ(SimdLevel(), SimdLevels().back());
  }
}

}  // namespace
}  // namespace slimgrad::kernels
