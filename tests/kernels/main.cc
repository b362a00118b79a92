// Runs the tests of this folder on the best instruction set of the machine, or with --simd=avx2 and
// so on, on that one. Compiled with SLIMGRAD_ON_CUDA: on a GPU, or what stands in for it. Where the
// machine has it not, every case is skipped.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "kernels/simd.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {

CudaStream*& SubjectStream() {
  static CudaStream* stream = nullptr;
  return stream;
}

namespace {

class NotOnThisMachine final : public ::testing::Environment {
 public:
  explicit NotOnThisMachine(std::string why) : why_(std::move(why)) {}
  void SetUp() override { GTEST_SKIP() << why_; }

 private:
  std::string why_;
};

void SkipAll(std::string why) {
  ::testing::AddGlobalTestEnvironment(new NotOnThisMachine(std::move(why)));
}

// False for what is no level.
bool TakeLevel(std::string_view argument) {
  constexpr std::string_view kFlag = "--simd=";
  if (!argument.starts_with(kFlag)) return false;
  if (!ForceSimdLevel(argument.substr(kFlag.size())))
    SkipAll("this machine has no such instructions");
  return true;
}

#ifdef SLIMGRAD_ON_CUDA
int RunAll() {
  const Result<std::unique_ptr<CudaStream>> stream = CudaStream::Open(0);
  if (stream.ok()) {
    SubjectStream() = stream->get();
  } else {
    SkipAll(stream.status().message());
  }
  return RUN_ALL_TESTS();
}
#else
int RunAll() {
  std::printf("instructions: %s\n", SimdLevel().data());
  return RUN_ALL_TESTS();
}
#endif

}  // namespace
}  // namespace slimgrad::kernels

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (slimgrad::kernels::TakeLevel(argv[i])) continue;
    std::fprintf(stderr, "expected --simd=LEVEL, found '%s'\n", argv[i]);
    return 2;
  }
  return slimgrad::kernels::RunAll();
}
