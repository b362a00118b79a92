// 64-bit XXH3 (xxHash library): checksums of frames and files, hashes of specs and random keys. Not
// cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace slimgrad {

std::uint64_t Hash64(std::span<const std::byte> bytes);
std::uint64_t Hash64(std::string_view text);

// Hashes the concatenation of what is added; integers as 8 little-endian bytes.
class Hasher {
 public:
  Hasher& Add(std::uint64_t value);
  Hasher& Add(std::string_view text);
  std::uint64_t Digest() const { return Hash64(buffer_); }

 private:
  std::string buffer_;
};

}  // namespace slimgrad
