#include "kernels/random.h"

namespace slimgrad::kernels::ref {

void FillRandom16(const Backend&, const RandomKey& key, std::uint64_t first,
                  std::span<std::uint16_t> to) {
  for (std::size_t j = 0; j < to.size(); ++j) to[j] = Random16(key, first + j);
}

}  // namespace slimgrad::kernels::ref
