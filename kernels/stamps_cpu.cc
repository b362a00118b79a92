#include <cstring>

#include "kernels/stamps.h"

namespace slimgrad::kernels::cpu {

void WriteStamps(const Backend&, const Stamps& stamps, std::span<std::byte> frame) {
  for (const Stamp& stamp : stamps.span())
    std::memcpy(frame.data() + stamp.offset, stamp.bytes.data(), stamp.size);
}

void CheckStamps(const Backend&, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong) {
  for (const Stamp& stamp : stamps.span())
    if (std::memcmp(frame.data() + stamp.offset, stamp.bytes.data(), stamp.size) != 0) ++*wrong;
}

}  // namespace slimgrad::kernels::cpu
