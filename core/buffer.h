// Owned memory of a fixed number of elements, zeroed, aligned to 64 bytes. Move-only. State fields
// and driver buffers are Buffers, so that steady-state steps allocate nothing.
//
// Large ones are whole huge pages where the system grants them, and a page becomes real only when
// it is first written: by the thread that uses it, on that thread's memory node.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace slimgrad {

inline constexpr std::size_t kBufferAlignment = 64;

// bytes > 0; throws std::bad_alloc. What it returns is freed with the same size.
void* AllocateZeroed(std::size_t bytes);
void FreeZeroed(void* memory, std::size_t bytes);

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    SLIMGRAD_CHECK(size <= PTRDIFF_MAX / sizeof(T));
    const std::size_t bytes = size * sizeof(T);
    data_ = {static_cast<T*>(AllocateZeroed(bytes)), Free{bytes}};
  }

  // What was moved from is empty.
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::size_t size() const { return size_; }
  T* data() const { return data_.get(); }
  std::span<T> span() const { return {data_.get(), size_}; }
  std::span<T> first(std::size_t n) const { return span().first(n); }

 private:
  struct Free {
    std::size_t bytes = 0;
    void operator()(T* p) const { FreeZeroed(p, bytes); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace slimgrad
