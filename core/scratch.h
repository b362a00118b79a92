// Memory that a call needs only while it runs. Taken in stack order, kept for the next call: after
// the first steps nothing is allocated. One Scratch belongs to one thread, and on a device to one
// stream: its order keeps uses of the same memory apart.
//
//   ScratchScope scope(*context.scratch);
//   const Out values = scope.Take<float>(n);   // valid until `scope` ends
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/buffer.h"
#include "core/check.h"

namespace slimgrad {

class Scratch {
 public:
  explicit Scratch(Memory& memory = HostMemory()) : memory_(&memory) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  friend class ScratchScope;
  struct Block {
    Buffer<std::byte> memory;
    std::size_t used = 0;
  };
  std::span<std::byte> Take(std::size_t bytes);
  void Release(std::size_t blocks, std::size_t used);

  Memory* memory_;
  std::vector<Block> blocks_;  // blocks [0, open_) are in use, the last of them partly
  std::size_t open_ = 0;
};

class ScratchScope {
 public:
  explicit ScratchScope(Scratch& scratch);
  ~ScratchScope() { scratch_.Release(blocks_, used_); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

  // Aligned to kBufferAlignment; contents unspecified.
  std::span<std::byte> Take(std::size_t bytes) { return scratch_.Take(bytes); }
  template <class T>
  std::span<T> Take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    SLIMGRAD_CHECK(count <= PTRDIFF_MAX / sizeof(T));
    return {reinterpret_cast<T*>(Take(count * sizeof(T)).data()), count};
  }

 private:
  Scratch& scratch_;
  std::size_t blocks_;
  std::size_t used_;
};

}  // namespace slimgrad
