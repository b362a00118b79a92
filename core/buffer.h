// Owned memory of a fixed number of elements, zeroed, aligned to 64 bytes. Move-only. State fields
// and driver buffers are Buffers, so that steady-state steps allocate nothing.
//
// On a device, the span is for kernels alone: Memory::Read and Write reach it from the host. On the
// host, large ones are whole huge pages where the system grants them, and a page becomes real only
// when it is first written: by the thread that uses it, on that thread's memory node.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "core/check.h"
#include "core/memory.h"

namespace slimgrad {

inline constexpr std::size_t kBufferAlignment = 64;

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  // The memory is borrowed and outlives the buffer.
  explicit Buffer(std::size_t size, Memory& memory = HostMemory()) : size_(size), memory_(&memory) {
    if (size == 0) return;
    SLIMGRAD_CHECK(size <= PTRDIFF_MAX / sizeof(T));
    const std::size_t bytes = size * sizeof(T);
    data_ = {static_cast<T*>(memory.Allocate(bytes)), Free{bytes, &memory}};
  }

  // What was moved from is empty.
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        memory_(other.memory_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    memory_ = other.memory_;
    return *this;
  }

  std::size_t size() const { return size_; }
  Memory& memory() const { return *memory_; }
  T* data() const { return data_.get(); }
  std::span<T> span() const { return {data_.get(), size_}; }
  std::span<T> first(std::size_t n) const { return span().first(n); }

 private:
  struct Free {
    std::size_t bytes = 0;
    Memory* memory = nullptr;
    void operator()(T* p) const { memory->Free(p, bytes); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
  Memory* memory_ = &HostMemory();
};

}  // namespace slimgrad
