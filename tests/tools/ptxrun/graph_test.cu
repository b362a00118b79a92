// Graphs: captured from streams with CUDA's errors for what cannot be captured, and built by hand.
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/device.h"
#include "tests/tools/ptxrun/kernels.h"

namespace slimgrad {
namespace {

constexpr int kCount = 1000;
constexpr std::size_t kBytes = kCount * sizeof(float);

class CaptureTest : public ::testing::Test {
 protected:
  CaptureTest() {
    Check(cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking));
    Check(cudaStreamCreate(&side_));
    Check(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
    Check(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
  }
  ~CaptureTest() override {
    cudaEventDestroy(fork_);
    cudaEventDestroy(join_);
    cudaStreamDestroy(main_);
    cudaStreamDestroy(side_);
    cudaGetLastError();  // of calls that were to fail
  }

  cudaStreamCaptureStatus StatusOf(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    Check(cudaStreamIsCapturing(stream, &status));
    return status;
  }

  cudaStream_t main_ = nullptr;
  cudaStream_t side_ = nullptr;
  cudaEvent_t fork_ = nullptr;
  cudaEvent_t join_ = nullptr;
};

void Increment(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

class ForkAndJoinTest : public CaptureTest {
 protected:
  ForkAndJoinTest() { z_.Zero(); }

  // y = 2 x + z, where the second stream adds 3 x to z first.
  cudaGraph_t Capture() {
    Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
    Check(cudaMemcpyAsync(x_.data(), x_host_.data(), kBytes, cudaMemcpyHostToDevice, main_));
    Check(cudaMemsetAsync(y_.data(), 0, kBytes, main_));
    Check(cudaEventRecord(fork_, main_));
    Check(cudaStreamWaitEvent(side_, fork_, 0));
    EXPECT_EQ(StatusOf(side_), cudaStreamCaptureStatusActive);
    Axpy<<<8, 128, 0, side_>>>(3, x_.data(), z_.data(), kCount);
    Axpy<<<8, 128, 0, main_>>>(2, x_.data(), y_.data(), kCount);
    Check(cudaEventRecord(join_, side_));
    Check(cudaStreamWaitEvent(main_, join_, 0));
    Axpy<<<8, 128, 0, main_>>>(1, z_.data(), y_.data(), kCount);
    Check(cudaLaunchHostFunc(main_, Increment, &host_calls_));
    Check(cudaMemcpyAsync(y_host_.data(), y_.data(), kBytes, cudaMemcpyDeviceToHost, main_));
    cudaGraph_t graph = nullptr;
    Check(cudaStreamEndCapture(main_, &graph));
    return graph;
  }

  std::vector<float> x_host_ = std::vector<float>(kCount);
  std::vector<float> y_host_ = std::vector<float>(kCount);
  DeviceArray<float> x_{kCount}, y_{kCount}, z_{kCount};
  std::atomic<int> host_calls_ = 0;
};

TEST_F(ForkAndJoinTest, CapturesAndRunsNothing) {
  cudaGraph_t graph = Capture();
  EXPECT_EQ(StatusOf(main_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(StatusOf(side_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(host_calls_, 0);
  EXPECT_EQ(z_.Get(), std::vector<float>(kCount));
  std::size_t nodes = 0;
  Check(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 7);
  Check(cudaGraphDestroy(graph));
}

TEST_F(ForkAndJoinTest, RunsAtEachLaunch) {
  cudaGraph_t graph = Capture();
  cudaGraphExec_t executable = nullptr;
  Check(cudaGraphInstantiate(&executable, graph, 0));
  Check(cudaGraphDestroy(graph));
  float z = 0;
  for (int launch = 1; launch <= 3; ++launch) {
    const auto x = static_cast<float>(launch);
    x_host_.assign(kCount, x);
    Check(cudaGraphLaunch(executable, main_));
    Check(cudaStreamSynchronize(main_));
    z += 3 * x;
    EXPECT_EQ(y_host_, std::vector<float>(kCount, 2 * x + z));
    EXPECT_EQ(host_calls_, launch);
  }
  Check(cudaGraphExecDestroy(executable));
}

TEST_F(CaptureTest, SynchronisingEndsItInAnError) {
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(StatusOf(main_), cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(CaptureTest, AllocatingNeedsARelaxedCapture) {
  void* block = nullptr;
  cudaGraph_t graph = nullptr;
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeRelaxed));
  auto mode = cudaStreamCaptureModeRelaxed;
  Check(cudaThreadExchangeStreamCaptureMode(&mode));
  Check(cudaMalloc(&block, 16));
  Check(cudaThreadExchangeStreamCaptureMode(&mode));
  Check(cudaStreamEndCapture(main_, &graph));
  Check(cudaGraphDestroy(graph));
  Check(cudaFree(block));
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaMalloc(&block, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureTest, AnotherThreadAllocatesUnlessTheCaptureIsGlobal) {
  const auto allocate = [] {
    void* block = nullptr;
    cudaError_t error = cudaSuccess;
    std::thread([&] {
      error = cudaMalloc(&block, 16);
      cudaFree(block);
    }).join();
    return error;
  };
  cudaGraph_t graph = nullptr;
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(allocate(), cudaSuccess);
  Check(cudaStreamEndCapture(main_, &graph));
  Check(cudaGraphDestroy(graph));
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(allocate(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureTest, WorkThatIsNotJoinedIsAnError) {
  const DeviceArray<float> x(kCount);
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeGlobal));
  Check(cudaEventRecord(fork_, main_));
  Check(cudaStreamWaitEvent(side_, fork_, 0));
  Check(cudaMemsetAsync(x.data(), 0, kBytes, side_));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureUnjoined);
}

TEST_F(CaptureTest, TwoCapturesDoNotMerge) {
  Check(cudaStreamBeginCapture(main_, cudaStreamCaptureModeGlobal));
  Check(cudaStreamBeginCapture(side_, cudaStreamCaptureModeGlobal));
  Check(cudaEventRecord(fork_, main_));
  EXPECT_EQ(cudaStreamWaitEvent(side_, fork_, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureTest, TheLegacyStreamCannotWaitForACapturedOne) {
  const DeviceArray<float> x(kCount);
  Check(cudaStreamBeginCapture(side_, cudaStreamCaptureModeGlobal));  // a blocking stream
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, kBytes, nullptr), cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureInvalidated);
}

cudaKernelNodeParams TripleNode(void** arguments) {
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(TripleAndAdd);
  parameters.gridDim = dim3(8);
  parameters.blockDim = dim3(128);
  parameters.kernelParams = arguments;
  return parameters;
}

// 3 * (3 * 1 + 1) + addend for every element.
TEST(Graph, BuiltByHandAndChanged) {
  const DeviceArray<int> values(kCount);
  const std::vector<int> ones(kCount, 1);
  std::vector<int> got(kCount);
  int* data = values.data();
  int count = kCount, first_addend = 1, second_addend = 2;
  void* first_arguments[] = {&data, &first_addend, &count};
  void* second_arguments[] = {&data, &second_addend, &count};
  const auto first_kernel = TripleNode(first_arguments);
  const auto second_kernel = TripleNode(second_arguments);

  cudaGraph_t graph = nullptr;
  cudaGraphNode_t copy_in = nullptr, first = nullptr, second = nullptr, copy_out = nullptr;
  Check(cudaGraphCreate(&graph, 0));
  Check(cudaGraphAddMemcpyNode1D(&copy_in, graph, nullptr, 0, data, ones.data(), values.bytes(),
                                 cudaMemcpyHostToDevice));
  Check(cudaGraphAddKernelNode(&first, graph, &copy_in, 1, &first_kernel));
  Check(cudaGraphAddKernelNode(&second, graph, &first, 1, &second_kernel));
  Check(cudaGraphAddMemcpyNode1D(&copy_out, graph, &second, 1, got.data(), data, values.bytes(),
                                 cudaMemcpyDeviceToHost));
  cudaGraphExec_t executable = nullptr;
  Check(cudaGraphInstantiate(&executable, graph, 0));
  Check(cudaGraphLaunch(executable, nullptr));
  Check(cudaDeviceSynchronize());
  EXPECT_EQ(got, std::vector<int>(kCount, 14));

  second_addend = 7;
  Check(cudaGraphExecKernelNodeSetParams(executable, second, &second_kernel));
  Check(cudaGraphLaunch(executable, nullptr));
  Check(cudaDeviceSynchronize());
  EXPECT_EQ(got, std::vector<int>(kCount, 19));
  Check(cudaGraphExecDestroy(executable));
  Check(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace slimgrad
