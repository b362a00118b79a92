// 64-bit XXH3 (xxHash library): checksums of frames and files, hashes of specs and random keys. Not
// cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace slimgrad {

std::uint64_t Hash64(std::span<const std::byte> bytes);
std::uint64_t Hash64(std::string_view text);

// Hashes the concatenation of what is added; integers as 8 little-endian bytes. Allocates nothing:
// random keys are made within steps.
class Hasher {
 public:
  Hasher();
  Hasher& Add(std::uint64_t value);
  Hasher& Add(std::string_view text);
  std::uint64_t Digest() const;

 private:
  // An XXH3_state_t, whose header stays out of this one.
  alignas(64) std::array<std::byte, 576> state_;
};

}  // namespace slimgrad
