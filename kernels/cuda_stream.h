// A GPU and a stream on it: what a Backend of Device::kCuda stands on. In a program that does not
// link //kernels:on_cuda, or built where there is no CUDA toolkit, there is none to open.
//
//   SLIMGRAD_ASSIGN_OR_RETURN(const auto stream, CudaStream::Open(0));
//   kernels::F32ToF16(stream->backend(), x, halves, overflow, nullptr);   // memory on that GPU
//   SLIMGRAD_RETURN_IF_ERROR(stream->Wait());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/memory.h"
#include "core/status.h"
#include "kernels/backend.h"

namespace slimgrad {

// Threads: one at a time on an object; Memory's functions any.
// Lifetime: outlives buffers and scratch of its memory().
class CudaStream {
 public:
  // Device `ordinal` of the CUDA runtime. `stream` is a cudaStream_t of it, borrowed; null makes
  // one. kDevice: no driver, no such device, or one that this build has no code for; kOutOfMemory;
  // kUnsupported: built without CUDA.
  static Result<std::unique_ptr<CudaStream>> Open(int ordinal, void* stream = nullptr);

  virtual ~CudaStream() = default;

  Backend backend() { return {Device::kCuda, this, &InlineExecutor(), &memory(), nullptr}; }

  // On the device; freed memory waits for the stream. Allocate throws std::bad_alloc.
  virtual Memory& memory() = 0;

  // Waits for all that was put on the stream, and returns what went wrong first since the last
  // Wait: kDevice for a launch that failed, kCorrupt if faults() counted any, which then is 0.
  virtual Status Wait() = 0;

  // Counts on the device what kernels found wrong in memory that they must not trust.
  virtual std::uint64_t* faults() = 0;

  // For kernels: the cudaStream_t, its device, and how many multiprocessors that has.
  virtual void* handle() = 0;
  virtual int ordinal() const = 0;
  virtual int multiprocessors() const = 0;

  // For kernels: kWorkspaceBytes on the device, aligned to 16, for a call that has no Scratch. What
  // it holds is unspecified, and the next call's on this stream.
  virtual std::span<std::byte> workspace() = 0;
  static constexpr std::size_t kWorkspaceBytes = std::size_t{1} << 20;

  // For kernels: notes a cudaError_t other than success, for Wait to return.
  virtual void Note(int error, const char* what) = 0;
};

}  // namespace slimgrad
