#include "kernels/cuda_stream.h"

#include <cuda_runtime.h>

#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "kernels/cuda_device.h"

namespace slimgrad {
namespace {

// The runtime keeps the last error for whom it may concern; it is ours alone.
Status ErrorOf(cudaError_t error, const std::string& what) {
  cudaGetLastError();
  const std::string message = what + ": " + cudaGetErrorString(error);
  return error == cudaErrorMemoryAllocation ? OutOfMemory(message) : DeviceError(message);
}

class Stream final : public CudaStream, private Memory {
 public:
  Stream(int ordinal, cudaStream_t stream, bool own)
      : ordinal_(ordinal), stream_(stream), own_(own) {}

  // A device that fails here has failed in every call before, too.
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
      const Status failed = TakeError();
      if (!failed.ok()) return failed.In("CUDA device " + std::to_string(ordinal_));
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
    if (error == cudaSuccess) return;
    Status status = ErrorOf(static_cast<cudaError_t>(error), what);
    const std::lock_guard lock(mutex_);
    if (first_.ok()) first_ = std::move(status);
  }

  Status Wait() override {
    std::uint64_t faults = 0;
    Read(&faults, faults_, sizeof faults);
    if (faults > 0) {
      constexpr std::uint64_t kNone = 0;
      Write(faults_, &kNone, sizeof kNone);
    }
    Status failed = TakeError();
    if (!failed.ok() || faults == 0) return failed;
    return Corrupt("payloads on a device: expected headers and values as of this rank's, found " +
                   std::to_string(faults) + " places that are not");
  }

 private:
  Status TakeError() {
    const std::lock_guard lock(mutex_);
    return std::exchange(first_, Status());
  }

  Device device() const override { return Device::kCuda; }

  void* Allocate(std::size_t bytes) override {
    const CurrentDevice current(ordinal_);
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) cudaGetLastError();  // as in ErrorOf
    if (error != cudaSuccess && error != cudaErrorMemoryAllocation) Note(error, "allocating");
    if (error != cudaSuccess) throw std::bad_alloc();
    Note(cudaMemsetAsync(memory, 0, bytes, stream_), "clearing new memory");
    return memory;
  }

  void Free(void* memory, std::size_t) noexcept override {
    const CurrentDevice current(ordinal_);
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  }

  void Read(void* host, const void* from, std::size_t bytes) override {
    if (!Copy(host, from, bytes, cudaMemcpyDeviceToHost, "reading from the device"))
      std::memset(host, 0, bytes);
  }
  void Write(void* to, const void* host, std::size_t bytes) override {
    Copy(to, host, bytes, cudaMemcpyHostToDevice, "writing to the device");
  }

  bool Copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, const char* what) {
    if (bytes == 0) return true;
    const CurrentDevice current(ordinal_);
    const cudaError_t put = cudaMemcpyAsync(to, from, bytes, kind, stream_);
    const cudaError_t done = cudaStreamSynchronize(stream_);
    Note(put, what);
    Note(done, what);
    return put == cudaSuccess && done == cudaSuccess;
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
  cudaError_t asked = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  if (asked == cudaSuccess)
    asked = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  if (asked != cudaSuccess) return ErrorOf(asked, "CUDA device " + std::to_string(ordinal));
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
  if (count == 0) return DeviceError("CUDA: expected a device, found none");
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
