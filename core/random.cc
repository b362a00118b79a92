#include "core/random.h"

#include <Random123/philox.h>

#include "core/hash.h"

namespace slimgrad {

RandomKey MakeRandomKey(std::uint64_t seed, std::uint64_t step, std::string_view purpose,
                        std::string_view tensor, std::uint64_t rank_or_shared) {
  Hasher hasher;
  hasher.Add(seed)
      .Add(rank_or_shared)
      .Add(static_cast<std::uint64_t>(purpose.size()))
      .Add(purpose)
      .Add(tensor);
  return {hasher.Digest(), step};
}

std::array<std::uint32_t, 4> Philox(const RandomKey& key, std::uint64_t block) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const r123::Philox4x32::ctr_type counter = {
      {low(block), high(block), low(key.step), high(key.step)}};
  const r123::Philox4x32::key_type philox_key = {{low(key.bits), high(key.bits)}};
  const auto out = r123::Philox4x32()(counter, philox_key);
  return {out[0], out[1], out[2], out[3]};
}

std::uint16_t Random16(const RandomKey& key, std::uint64_t i) {
  const std::uint64_t lane = i % 8;
  return static_cast<std::uint16_t>(Philox(key, i / 8)[lane / 2] >> (16 * (lane % 2)));
}

float Uniform(const RandomKey& key, std::uint64_t i) {
  return static_cast<float>(Philox(key, i / 4)[i % 4] >> 8) * 0x1.0p-24F;
}

}  // namespace slimgrad
