#include <vector>

#include "kernels/stamps.h"

namespace slimgrad::kernels::ref {

void WriteStamps(const Backend&, const Stamps& stamps, std::span<std::byte> frame) {
  for (std::size_t s = 0; s < stamps.count; ++s)
    for (std::size_t i = 0; i < stamps.stamps[s].size; ++i)
      frame[stamps.stamps[s].offset + i] = stamps.stamps[s].bytes[i];
}

void CheckStamps(const Backend& backend, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong) {
  std::vector<std::byte> right(frame.begin(), frame.end());
  WriteStamps(backend, stamps, right);
  for (std::size_t i = 0; i < frame.size(); ++i) *wrong += frame[i] != right[i];
}

}  // namespace slimgrad::kernels::ref
