#include "sim/tensor_set.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slimgrad::sim {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const std::vector<TensorSpec>& Specs() {
  static const std::vector<TensorSpec> specs = {{"m", {2, 3}}, {"none", {0, 4}}, {"scalar", {}}};
  return specs;
}

TEST(TensorSet, OneZeroedViewATensor) {
  const TensorSet set{Specs()};
  ASSERT_EQ(set.ins().size(), 3U);
  ASSERT_EQ(set.outs().size(), 3U);
  ASSERT_EQ(set.views().size(), 3U);
  ASSERT_EQ(set.const_views().size(), 3U);
  EXPECT_EQ(set.ins()[0].size(), 6U);
  EXPECT_EQ(set.ins()[1].size(), 0U);
  EXPECT_EQ(set.ins()[2].size(), 1U);
  EXPECT_THAT(set.ins()[0], Each(0.0F));
  EXPECT_THAT(set.ins()[2], Each(0.0F));
}

TEST(TensorSet, AllViewsShowTheSameMemory) {
  const TensorSet set{Specs()};
  set.outs()[0][5] = 7;
  EXPECT_EQ(set.ins()[0][5], 7);
  EXPECT_EQ(set.views()[0].As<float>()[5], 7);
  EXPECT_EQ(set.const_views()[0].As<float>()[5], 7);
  EXPECT_EQ(set.ins()[2][0], 0);
}

TEST(TensorSet, AssignCopies) {
  TensorSet set{Specs()};
  std::vector<float> m = {1, 2, 3, 4, 5, 6};
  const std::vector<float> scalar = {-1};
  set.Assign(std::vector<In>{m, {}, scalar});
  m[0] = 100;
  EXPECT_THAT(set.ins()[0], ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(set.ins()[2], ElementsAre(-1));
}

TEST(TensorSet, MovingKeepsTheViews) {
  TensorSet first{Specs()};
  first.outs()[0][1] = 3;
  const In before = first.ins()[0];
  const TensorSet second = std::move(first);
  EXPECT_EQ(second.ins()[0].data(), before.data());
  EXPECT_EQ(second.outs()[0].data(), before.data());
  EXPECT_EQ(second.views()[0].data, before.data());
  EXPECT_EQ(second.const_views()[0].data, before.data());
  EXPECT_EQ(before[1], 3);
}

TEST(TensorSet, OfNothing) {
  const TensorSet set;
  EXPECT_TRUE(set.ins().empty());
  EXPECT_TRUE(set.views().empty());
}

}  // namespace
}  // namespace slimgrad::sim
