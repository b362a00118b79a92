// Owned memory of a fixed number of elements, zeroed, aligned to 64 bytes. Move-only. State fields
// and driver buffers are Buffers, so that steady-state steps allocate nothing.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace slimgrad {

inline constexpr std::size_t kBufferAlignment = 64;

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    SLIMGRAD_CHECK(size <= PTRDIFF_MAX / sizeof(T));
    data_.reset(
        static_cast<T*>(::operator new (size * sizeof(T), std::align_val_t{kBufferAlignment})));
    std::memset(static_cast<void*>(data_.get()), 0, size * sizeof(T));
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
    void operator()(T* p) const {
      ::operator delete (static_cast<void*>(p), std::align_val_t{kBufferAlignment});
    }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace slimgrad
