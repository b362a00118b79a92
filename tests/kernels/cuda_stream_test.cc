// What goes wrong on a GPU is a Status that names it, and what comes after works: on the device
// where it can, and on the CPU always.
#include "gtest/gtest.h"

#ifdef SLIMGRAD_HAVE_CUDA

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "core/buffer.h"
#include "kernels/convert.h"
#include "kernels/cuda_stream.h"
#include "kernels/elementwise.h"
#include "kernels/index_code.h"

namespace slimgrad {
namespace {

class CudaStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto stream = CudaStream::Open(0);
    if (!stream.ok()) GTEST_SKIP() << stream.status().message();
    stream_ = std::move(*stream);
  }
  std::unique_ptr<CudaStream> stream_;
};

// Whether the stream still computes.
void ExpectWorks(CudaStream& stream) {
  const std::vector<float> x = {1, -2, 3, INFINITY};
  Buffer<float> there(x.size(), stream.memory());
  const Buffer<std::uint64_t> count(1, stream.memory());
  stream.memory().Write(there.data(), x.data(), x.size() * sizeof(float));
  const ConstView view = {there.data(), x.size(), DType::kF32, Device::kCuda};
  kernels::CountNonFinite(stream.backend(), view, count.data());
  std::uint64_t found = 0;
  stream.memory().Read(&found, count.data(), sizeof found);
  EXPECT_EQ(found, 1U);
  const Status status = stream.Wait();
  EXPECT_TRUE(status.ok()) << status.message();
}

void ExpectError(const Status& status, Code code, std::string_view text) {
  EXPECT_EQ(status.code(), code);
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

TEST_F(CudaStreamTest, ADeviceThatIsNotThereIsNamed) {
  for (const int ordinal : {-1, 99}) {
    const auto opened = CudaStream::Open(ordinal);
    ASSERT_FALSE(opened.ok());
    ExpectError(opened.status(), Code::kDevice, "found " + std::to_string(ordinal));
  }
  ExpectWorks(*stream_);
}

TEST_F(CudaStreamTest, TheFirstErrorIsReturnedOnce) {
  stream_->Note(cudaErrorInvalidValue, "the first call");
  stream_->Note(cudaErrorInvalidDevice, "the second call");
  ExpectError(stream_->Wait(), Code::kDevice, "the first call: ");
  ExpectWorks(*stream_);
}

TEST_F(CudaStreamTest, FaultsAreCountedAndForgotten) {
  const std::vector<std::uint8_t> endless = {0x80, 0x80, 0x80};  // no number ends
  Buffer<std::uint8_t> code(3, stream_->memory());
  const Buffer<std::uint32_t> indices(3, stream_->memory());
  stream_->memory().Write(code.data(), endless.data(), endless.size());
  EXPECT_TRUE(kernels::DeltaDecode(stream_->backend(), code.span(), indices.span()).ok());
  ExpectError(stream_->Wait(), Code::kCorrupt, "found 1 places");
  ExpectWorks(*stream_);
}

TEST_F(CudaStreamTest, TooLittleMemoryThrowsAndLeavesNoError) {
  EXPECT_THROW(Buffer<float>(std::size_t{1} << 50, stream_->memory()), std::bad_alloc);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ExpectWorks(*stream_);
}

// Waiting spoils a capture, and a launch in a spoilt capture fails.
TEST_F(CudaStreamTest, ALaunchThatFailsIsNamed) {
  const Buffer<float> x(4, stream_->memory());
  auto* const stream = static_cast<cudaStream_t>(stream_->handle());
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(stream_->Wait().code(), Code::kDevice);
  kernels::Fill(stream_->backend(), 1.0F, x.span());
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);  // of the line before
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ExpectError(stream_->Wait(), Code::kDevice, "fill");
  ExpectWorks(*stream_);
}

TEST_F(CudaStreamTest, AReadThatFailsGivesZeros) {
  auto* const stream = static_cast<cudaStream_t>(stream_->handle());
  const Buffer<std::uint64_t> there(1, stream_->memory());
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::uint64_t here = 7;
  stream_->memory().Read(&here, there.data(), sizeof here);
  EXPECT_EQ(here, 0U);
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGetLastError();
  ExpectError(stream_->Wait(), Code::kDevice, "reading from the device");
  ExpectWorks(*stream_);
}

// The program that links slimgrad has calls of its own that fail.
TEST_F(CudaStreamTest, ErrorsOfOthersStayTheirs) {
  EXPECT_NE(cudaSetDevice(12345), cudaSuccess);
  ExpectWorks(*stream_);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaStreamTest, ABorrowedStreamStaysOpen) {
  cudaStream_t mine = nullptr;
  ASSERT_EQ(cudaStreamCreate(&mine), cudaSuccess);
  {
    const auto opened = CudaStream::Open(0, mine);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ((*opened)->handle(), mine);
    ExpectWorks(**opened);
  }
  EXPECT_EQ(cudaStreamSynchronize(mine), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(mine), cudaSuccess);
}

// Every device but the current one, which stays so.
TEST_F(CudaStreamTest, AnotherDeviceMayBeCurrent) {
  int devices = 0, current = -1;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  for (int device = 1; device < devices; ++device) {
    const auto opened = CudaStream::Open(device);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    ExpectWorks(**opened);
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
  }
}

}  // namespace
}  // namespace slimgrad

#else

TEST(CudaStreamTest, EveryCase) { GTEST_SKIP() << "built without a CUDA toolkit"; }

#endif  // SLIMGRAD_HAVE_CUDA
