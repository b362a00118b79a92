#include "tests/cuda/contracts.h"

#include <gtest/gtest.h>

#include "tests/cuda/layout.h"

namespace slimgrad {
namespace {

TEST(CudaContractsTest, NvccLaysTypesOutAsTheHostCompilerDoes) {
  const auto under_nvcc = LayoutUnderNvcc();
  if (!under_nvcc.has_value()) GTEST_SKIP() << "no CUDA toolkit in this build";
  EXPECT_EQ(*under_nvcc, LayoutHere());
}

}  // namespace
}  // namespace slimgrad
