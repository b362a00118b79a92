// Where buffers lie: the host's memory, or a device's. Kernels run where the memory is; the rest of
// the library only passes it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace slimgrad {

// Where memory lives. A view carries it, and every kernel runs where its views are.
enum class Device : std::uint8_t { kCpu = 0, kCuda = 1 };

constexpr std::string_view NameOf(Device device) {
  return device == Device::kCpu ? "host" : "CUDA device";
}

// Threads: any, at once.
class Memory {
 public:
  virtual ~Memory() = default;

  virtual Device device() const = 0;

  // bytes > 0. Zeroed, aligned to kBufferAlignment (core/buffer.h); throws std::bad_alloc. What it
  // returns is freed with the same size.
  virtual void* Allocate(std::size_t bytes) = 0;
  virtual void Free(void* memory, std::size_t bytes) noexcept = 0;

  // Copy from here to the host and back, after everything that was put on the device before, and
  // return when it is done. What fails on a device (a copy, or work put there before) is said by
  // CudaStream::Wait; Read then gives zeros.
  virtual void Read(void* host, const void* from, std::size_t bytes) = 0;
  virtual void Write(void* to, const void* host, std::size_t bytes) = 0;
};

Memory& HostMemory();

}  // namespace slimgrad
