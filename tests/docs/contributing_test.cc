// The compressor that CONTRIBUTING.md walks through, taken from its text. The same file in
// compressors/ passes the conformance suite; here it only has to keep up with the interfaces.
#include <array>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"

namespace slimgrad {
namespace {

std::vector<float> AverageOf(const char* spec, const std::vector<float>& gradient) {
  const Result<Compressor> compressor = MakeCompressor(spec);
  EXPECT_TRUE(compressor.ok()) << compressor.status().message();
  LockStepGroup group(1);
  const auto exchange =
      Exchange::Create(group, *compressor, {{"w", {std::ssize(gradient)}}}, ExchangeOptions{});
  EXPECT_TRUE(exchange.ok()) << exchange.status().message();
  std::vector<float> average(gradient.size());
  const std::array in = {ConstView(In(gradient))};
  const std::array out = {View(Out(average))};
  const std::array<std::span<const ConstView>, 1> gradients = {in};
  const std::array<std::span<const View>, 1> averages = {out};
  const Status status = (*exchange)->Step(gradients, averages, {});
  EXPECT_TRUE(status.ok()) << status.message();
  return average;
}

TEST(Contributing, TheCompressorOfTheTextSendsSignsOfTheLargest) {
  EXPECT_EQ(AverageOf("sparse_ternary(ratio=0.4)", {1, -4, 0, 2, 1}),
            (std::vector<float>{0, -3, 0, 3, 0}));
}

TEST(Contributing, ItWorksUnderErrorFeedbackAndForNothing) {
  EXPECT_EQ(AverageOf("error_feedback(sparse_ternary(ratio=0.2))", {1, -4, 0, 2, 1}),
            (std::vector<float>{0, -4, 0, 0, 0}));
  EXPECT_TRUE(AverageOf("sparse_ternary", {}).empty());
}

}  // namespace
}  // namespace slimgrad
