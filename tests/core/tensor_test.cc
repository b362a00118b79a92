#include "core/tensor.h"

#include <limits>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int64_t>::max();

TEST(TensorSpec, CountsElements) {
  EXPECT_EQ((TensorSpec{"scalar", {}}).numel(), 1U);
  EXPECT_EQ((TensorSpec{"empty", {3, 0, 5}}).numel(), 0U);
  EXPECT_EQ((TensorSpec{"w", {2, 3, 5}}).numel(), 30U);
  // More than 2^31 elements are ordinary.
  EXPECT_EQ((TensorSpec{"big", {65536, 65537}}).numel(), std::size_t{65536} * 65537);
}

TEST(TensorSpec, RefusesWhatCannotBe) {
  EXPECT_EQ(Validate({"w", {2, -1}}).message(),
            "tensor 'w': shape: expected no negative extent, found [2, -1]");
  EXPECT_EQ(Validate({"w", {kMaxExtent}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Validate({"w", {std::int64_t{1} << 32, std::int64_t{1} << 32}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Validate({"w", {3, kMaxExtent, 2}}).code(), Code::kInvalidArgument);
  EXPECT_DEATH(static_cast<void>((TensorSpec{"w", {-1}}).numel()), "check failed");
}

TEST(TensorSpec, TheLimitIsFp64BytesIn63Bits) {
  const std::int64_t most = kMaxExtent / 8;
  EXPECT_TRUE(Validate({"w", {most}}).ok());
  EXPECT_FALSE(Validate({"w", {most + 1}}).ok());
}

TEST(TensorSpec, ShapeText) {
  EXPECT_EQ(ShapeText({}), "[]");
  const std::vector<std::int64_t> shape = {2, 3};
  EXPECT_EQ(ShapeText(shape), "[2, 3]");
}

TEST(View, KnowsItsType) {
  std::vector<float> values = {1, 2, 3};
  const ConstView view{In(values)};
  EXPECT_EQ(view.numel, 3U);
  EXPECT_EQ(view.As<float>()[2], 3.0F);
  EXPECT_DEATH(static_cast<void>(view.As<std::int32_t>()), "check failed");

  const View writable{Out(values)};
  writable.As<float>()[0] = 9;
  EXPECT_EQ(values[0], 9.0F);
}

}  // namespace
}  // namespace slimgrad
