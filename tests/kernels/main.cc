// Runs the tests of this folder on one instruction set: --simd=avx2 and so on, the best one without
// it. Where the machine has it not, every case is skipped.
#include <cstdio>
#include <string_view>

#include <gtest/gtest.h>

#include "kernels/simd.h"

namespace {

class NotOnThisMachine final : public ::testing::Environment {
 public:
  void SetUp() override { GTEST_SKIP() << "this machine has no such instructions"; }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFlag = "--simd=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFlag)) {
      std::fprintf(stderr, "expected %sLEVEL, found '%s'\n", kFlag.data(), argv[i]);
      return 2;
    }
    if (!slimgrad::kernels::ForceSimdLevel(argument.substr(kFlag.size())))
      ::testing::AddGlobalTestEnvironment(new NotOnThisMachine);
  }
  std::printf("instructions: %s\n", slimgrad::kernels::SimdLevel().data());
  return RUN_ALL_TESTS();
}
