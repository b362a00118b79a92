#include "kernels/cuda_stream.h"

#include <cuda_runtime.h>

#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "kernels/cuda_device.h"

namespace slimgrad {
namespace {

Status ErrorOf(cudaError_t error, const std::string& what) {
  const std::string message = what + ": " + cudaGetErrorString(error);
  return error == cudaErrorMemoryAllocation ? OutOfMemory(message) : DeviceError(message);
}

class Stream final : public CudaStream, private Memory {
 public:
  Stream(int ordinal, cudaStream_t stream, bool own)
      : ordinal_(ordinal), stream_(stream), own_(own) {}

  ~Stream() override {
    const CurrentDevice current(ordinal_);
    cudaStreamSynchronize(stream_);
    if (faults_ != nullptr) cudaFree(faults_);
    if (workspace_ != nullptr) cudaFree(workspace_);
    if (own_) cudaStreamDestroy(stream_);
  }

  Status Prepare() {
    const CurrentDevice current(ordinal_);
    const cudaError_t error =
        cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal_);
    if (error != cudaSuccess) return ErrorOf(error, "CUDA device " + std::to_string(ordinal_));
    try {
      faults_ = static_cast<std::uint64_t*>(Allocate(sizeof *faults_));
      workspace_ = static_cast<std::byte*>(Allocate(kWorkspaceBytes));
    } catch (const std::bad_alloc&) {
      return OutOfMemory("CUDA device " + std::to_string(ordinal_) + ": expected " +
                         std::to_string(kWorkspaceBytes + sizeof *faults_) + " bytes free");
    }
    return Wait();
  }

  Memory& memory() override { return *this; }
  std::uint64_t* faults() override { return faults_; }
  void* handle() override { return stream_; }
  std::span<std::byte> workspace() override { return {workspace_, kWorkspaceBytes}; }
  int ordinal() const override { return ordinal_; }
  int multiprocessors() const override { return multiprocessors_; }

  void Note(int error, const char* what) override {
    const std::lock_guard lock(mutex_);
    if (error != cudaSuccess && first_.ok())
      first_ = ErrorOf(static_cast<cudaError_t>(error), what);
  }

  Status Wait() override {
    std::uint64_t faults = 0;
    Read(&faults, faults_, sizeof faults);
    if (faults > 0) {
      constexpr std::uint64_t kNone = 0;
      Write(faults_, &kNone, sizeof kNone);
    }
    const std::lock_guard lock(mutex_);
    if (!first_.ok()) return std::exchange(first_, Status());
    if (faults == 0) return {};
    return Corrupt("payload on a device: expected well-formed sections, found " +
                   std::to_string(faults) + " that are not");
  }

 private:
  Device device() const override { return Device::kCuda; }

  void* Allocate(std::size_t bytes) override {
    const CurrentDevice current(ordinal_);
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
      cudaGetLastError();  // it is ours alone: later calls shall not find it
      throw std::bad_alloc();
    }
    Note(cudaMemsetAsync(memory, 0, bytes, stream_), "clearing new memory");
    return memory;
  }

  void Free(void* memory, std::size_t) noexcept override {
    const CurrentDevice current(ordinal_);
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  }

  void Read(void* host, const void* from, std::size_t bytes) override {
    Copy(host, from, bytes, cudaMemcpyDeviceToHost, "reading from the device");
  }
  void Write(void* to, const void* host, std::size_t bytes) override {
    Copy(to, host, bytes, cudaMemcpyHostToDevice, "writing to the device");
  }

  void Copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, const char* what) {
    const CurrentDevice current(ordinal_);
    if (bytes > 0) Note(cudaMemcpyAsync(to, from, bytes, kind, stream_), what);
    Note(cudaStreamSynchronize(stream_), what);
  }

  int ordinal_;
  cudaStream_t stream_;
  bool own_;
  int multiprocessors_ = 1;
  std::uint64_t* faults_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::mutex mutex_;  // of first_
  Status first_;
};

// A build carries code for some architectures, and PTX for later ones.
Status CheckCode(int ordinal) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  if (major >= 8) return {};
  return DeviceError("CUDA device " + std::to_string(ordinal) +
                     ": compute capability: expected at least 8.0, found " + std::to_string(major) +
                     "." + std::to_string(minor));
}

}  // namespace

Result<std::unique_ptr<CudaStream>> CudaStream::Open(int ordinal, void* stream) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess) return ErrorOf(found, "CUDA");
  if (ordinal < 0 || ordinal >= count)
    return DeviceError("CUDA device: expected 0 to " + std::to_string(count - 1) + ", found " +
                       std::to_string(ordinal));
  SLIMGRAD_RETURN_IF_ERROR(CheckCode(ordinal));
  const bool own = stream == nullptr;
  auto handle = static_cast<cudaStream_t>(stream);
  if (own) {
    const CurrentDevice current(ordinal);
    const cudaError_t made = cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
    if (made != cudaSuccess) return ErrorOf(made, "CUDA device " + std::to_string(ordinal));
  }
  auto opened = std::make_unique<Stream>(ordinal, handle, own);
  SLIMGRAD_RETURN_IF_ERROR(opened->Prepare());
  return std::unique_ptr<CudaStream>(std::move(opened));
}

}  // namespace slimgrad
