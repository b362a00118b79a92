#include <vector>

#include "core/check.h"
#include "kernels/index_code.h"

namespace slimgrad::kernels::ref {
namespace {

// `gap` in base 128, lowest digit first.
std::vector<std::uint8_t> Digits(std::uint64_t gap) {
  std::vector<std::uint8_t> digits;
  do {
    digits.push_back(static_cast<std::uint8_t>(gap % 128));
    gap /= 128;
  } while (gap != 0);
  for (std::size_t d = 0; d + 1 < digits.size(); ++d) digits[d] += 128;
  return digits;
}

}  // namespace

std::size_t DeltaEncode(const Backend&, std::span<const std::uint32_t> indices,
                        std::span<std::uint8_t> code) {
  std::vector<std::uint8_t> all;
  for (std::size_t j = 0; j < indices.size(); ++j) {
    SLIMGRAD_CHECK(j == 0 || indices[j] > indices[j - 1]);
    for (std::uint8_t digit : Digits(j == 0 ? indices[0] : indices[j] - indices[j - 1] - 1))
      all.push_back(digit);
  }
  SLIMGRAD_CHECK(code.size() >= DeltaBound(indices.size()));
  for (std::size_t i = 0; i < all.size(); ++i) code[i] = all[i];
  return all.size();
}

// Splits the code after each byte below 128, reads the pieces as numbers, and accepts them if
// encoding them again gives the same bytes.
Status DeltaDecode(const Backend&, std::span<const std::uint8_t> code,
                   std::span<std::uint32_t> indices) {
  std::vector<std::vector<std::uint8_t>> pieces(1);
  for (std::uint8_t byte : code) {
    pieces.back().push_back(byte);
    if (byte < 128) pieces.emplace_back();
  }
  if (!pieces.back().empty()) return Corrupt("delta code: cut within a gap");
  pieces.pop_back();
  if (pieces.size() != indices.size())
    return Corrupt("delta code: another number of gaps expected");
  std::uint64_t next = 0;
  for (std::size_t j = 0; j < pieces.size(); ++j) {
    if (pieces[j].size() > 5) return Corrupt("delta code: gap of more than 5 bytes");
    std::uint64_t gap = 0;
    for (std::size_t d = pieces[j].size(); d-- > 0;) gap = gap * 128 + pieces[j][d] % 128;
    if (Digits(gap) != pieces[j]) return Corrupt("delta code: gap not in its shortest form");
    if (next + gap >= std::uint64_t{1} << 32)
      return Corrupt("delta code: index of more than 32 bits");
    indices[j] = static_cast<std::uint32_t>(next + gap);
    next = next + gap + 1;
  }
  return {};
}

}  // namespace slimgrad::kernels::ref
