#include "core/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "core/buffer.h"

namespace slimgrad {
namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

// From here on, rounding up to huge pages wastes at most a third.
constexpr std::size_t kSmallestMapping = 2 * kHugePage;

constexpr std::size_t RoundUp(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// Whole huge pages, cut out of a mapping that is one page longer.
void* MapHugePages(std::size_t bytes) {
  const std::size_t size = RoundUp(bytes);
  void* mapped =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const start = static_cast<std::byte*>(mapped);
  const std::size_t head =
      RoundUp(reinterpret_cast<std::uintptr_t>(start)) - reinterpret_cast<std::uintptr_t>(start);
  if (head > 0) munmap(start, head);
  if (head < kHugePage) munmap(start + head + size, kHugePage - head);
  madvise(start + head, size, MADV_HUGEPAGE);  // refused where the system has none: no matter
  return start + head;
}

class Host final : public Memory {
 public:
  Device device() const override { return Device::kCpu; }

  void* Allocate(std::size_t bytes) override {
    if (bytes >= kSmallestMapping) return MapHugePages(bytes);
    void* const memory = ::operator new (bytes, std::align_val_t{kBufferAlignment});
    std::memset(memory, 0, bytes);
    return memory;
  }
  void Free(void* memory, std::size_t bytes) noexcept override {
    if (bytes >= kSmallestMapping) {
      munmap(memory, RoundUp(bytes));
    } else {
      ::operator delete (memory, std::align_val_t{kBufferAlignment});
    }
  }

  void Read(void* host, const void* from, std::size_t bytes) override { Copy(host, from, bytes); }
  void Write(void* to, const void* host, std::size_t bytes) override { Copy(to, host, bytes); }

 private:
  static void Copy(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

Memory& HostMemory() {
  static Host host;
  return host;
}

}  // namespace slimgrad
