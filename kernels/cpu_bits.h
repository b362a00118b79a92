// Private to the cpu kernels: bits that do not start at a byte, a word of up to 64 at a time. Bit i
// is bit i % 8 of byte i / 8.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/sign.h"

namespace slimgrad::kernels::cpu {

static_assert(std::endian::native == std::endian::little);

// Appends bits to memory, from a byte boundary on; a group of 64 at a time where all before it
// were whole groups.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* to) : to_(to) {}

  void PutGroup(std::uint64_t word) {
    if (fill_ > 0) return Put(word, 64);
    std::memcpy(to_, &word, 8);
    to_ += 8;
  }

  // The low `count` bits of word, 1 to 64; those above are 0.
  void Put(std::uint64_t word, std::size_t count) {
    pending_ |= word << fill_;
    if (fill_ + count < 64) {
      fill_ += count;
      return;
    }
    std::memcpy(to_, &pending_, 8);
    to_ += 8;
    pending_ = fill_ > 0 ? word >> (64 - fill_) : 0;
    fill_ = fill_ + count - 64;
  }

  // Writes what is left, and zeros up to the end of the last byte.
  void Finish() { std::memcpy(to_, &pending_, BitBytes(fill_)); }

 private:
  std::uint8_t* to_;
  std::uint64_t pending_ = 0;  // the low fill_ bits, of at most 63
  std::size_t fill_ = 0;
};

// `count` bits from bit `at` on, 1 to 64; what the word has above them is unspecified. Reads no
// byte beyond theirs.
inline std::uint64_t BitsAt(const std::uint8_t* bits, std::size_t at, std::size_t count) {
  const std::uint8_t* from = bits + at / 8;
  const std::size_t shift = at % 8;
  std::uint64_t word = 0;
  std::memcpy(&word, from, count == 64 ? 8 : std::min<std::size_t>(8, BitBytes(shift + count)));
  word >>= shift;
  if (shift + count > 64) word |= static_cast<std::uint64_t>(from[8]) << (64 - shift);
  return word;
}

}  // namespace slimgrad::kernels::cpu
