#include "core/hash.h"

#include <xxhash.h>

namespace slimgrad {

std::uint64_t Hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t Hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

Hasher& Hasher::Add(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) buffer_.push_back(static_cast<char>(value >> shift));
  return *this;
}

Hasher& Hasher::Add(std::string_view text) {
  buffer_ += text;
  return *this;
}

}  // namespace slimgrad
