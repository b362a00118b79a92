// Where no GPU can be used, opening one says why, and the CPU goes on. Run without a device, and on
// one that is too old.
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "kernels/cuda_stream.h"
#include "kernels/elementwise.h"

namespace slimgrad {
namespace {

TEST(NoDeviceTest, IsSaidAndTheCpuGoesOn) {
  const auto opened = CudaStream::Open(0);
  if (opened.ok()) GTEST_SKIP() << "there is a device that can be used";
  const Code code = opened.status().code();
  EXPECT_TRUE(code == Code::kDevice || code == Code::kUnsupported);
  EXPECT_TRUE(opened.status().message().starts_with("CUDA")) << opened.status().message();
  std::vector<float> y(3);
  kernels::Fill(Backend(), 2.0F, y);
  EXPECT_EQ(y, std::vector<float>(3, 2.0F));
}

}  // namespace
}  // namespace slimgrad
