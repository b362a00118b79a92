#include "core/hash.h"

#include <new>

#define XXH_STATIC_LINKING_ONLY  // for the size of XXH3_state_t
#include <xxhash.h>

namespace slimgrad {
namespace {

static_assert(sizeof(XXH3_state_t) == 576 && alignof(XXH3_state_t) <= 64);

XXH3_state_t* StateIn(std::array<std::byte, 576>& memory) {
  return std::launder(reinterpret_cast<XXH3_state_t*>(memory.data()));
}

}  // namespace

std::uint64_t Hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t Hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

Hasher::Hasher() { XXH3_64bits_reset(new (state_.data()) XXH3_state_t{}); }

Hasher& Hasher::Add(std::uint64_t value) {
  std::array<char, 8> bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(value);
    value >>= 8;
  }
  return Add(std::string_view(bytes.data(), bytes.size()));
}

Hasher& Hasher::Add(std::string_view text) {
  XXH3_64bits_update(StateIn(state_), text.data(), text.size());
  return *this;
}

std::uint64_t Hasher::Digest() const {
  return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(state_.data()));
}

}  // namespace slimgrad
