#include <cstring>

#include "core/check.h"
#include "kernels/stamps.h"

namespace slimgrad::kernels::cpu {
namespace {

void CheckPlace(const Stamp& stamp, std::size_t size) {
  SLIMGRAD_CHECK(stamp.offset <= size && stamp.size <= size - stamp.offset);
}

}  // namespace

void WriteStamps(const Backend&, const Stamps& stamps, std::span<std::byte> frame) {
  for (const Stamp& stamp : stamps.span()) {
    CheckPlace(stamp, frame.size());
    std::memcpy(frame.data() + stamp.offset, stamp.bytes.data(), stamp.size);
  }
}

void CheckStamps(const Backend&, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong) {
  for (const Stamp& stamp : stamps.span()) {
    CheckPlace(stamp, frame.size());
    if (std::memcmp(frame.data() + stamp.offset, stamp.bytes.data(), stamp.size) != 0) ++*wrong;
  }
}

}  // namespace slimgrad::kernels::cpu
