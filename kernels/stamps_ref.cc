#include "kernels/stamps.h"

namespace slimgrad::kernels::ref {

void WriteStamps(const Backend&, const Stamps& stamps, std::span<std::byte> frame) {
  for (std::size_t s = 0; s < stamps.count; ++s)
    for (std::size_t i = 0; i < stamps.stamps[s].size; ++i)
      frame[stamps.stamps[s].offset + i] = stamps.stamps[s].bytes[i];
}

void CheckStamps(const Backend&, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong) {
  for (std::size_t s = 0; s < stamps.count; ++s) {
    const Stamp& stamp = stamps.stamps[s];
    bool differs = false;
    for (std::size_t i = 0; i < stamp.size; ++i)
      differs = differs || frame[stamp.offset + i] != stamp.bytes[i];
    *wrong += differs ? 1 : 0;
  }
}

}  // namespace slimgrad::kernels::ref
