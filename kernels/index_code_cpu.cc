#include <string>

#include "core/check.h"
#include "kernels/index_code.h"

namespace slimgrad::kernels::cpu {

std::size_t DeltaEncode(const Backend&, std::span<const std::uint32_t> indices,
                        std::span<std::uint8_t> code) {
  std::size_t length = 0;
  std::uint64_t least = 0;  // the smallest index that may come next
  for (std::uint32_t index : indices) {
    SLIMGRAD_CHECK(index >= least);
    auto gap = static_cast<std::uint32_t>(index - least);
    for (; gap >= 0x80; gap >>= 7) code[length++] = static_cast<std::uint8_t>(gap | 0x80);
    code[length++] = static_cast<std::uint8_t>(gap);
    least = std::uint64_t{index} + 1;
  }
  return length;
}

Status DeltaDecode(const Backend&, std::span<const std::uint8_t> code,
                   std::span<std::uint32_t> indices) {
  const auto error = [](std::size_t j, const char* expected, std::uint64_t found) {
    return Corrupt("delta code of index " + std::to_string(j) + ": expected " + expected +
                   ", found " + std::to_string(found));
  };
  std::size_t at = 0;
  std::uint64_t least = 0;
  for (std::size_t j = 0; j < indices.size(); ++j) {
    std::uint64_t gap = 0;
    for (int shift = 0;; shift += 7) {
      if (at == code.size()) return error(j, "more bytes than the code has", code.size());
      if (shift == 35) return error(j, "at most 5 bytes", 6);
      const std::uint8_t byte = code[at++];
      gap |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift != 0) return error(j, "the shortest form", 0);
      break;
    }
    const std::uint64_t index = least + gap;  // below 2^36: no overflow
    if (index > 0xFFFFFFFF) return error(j, "an index below 2^32", index);
    indices[j] = static_cast<std::uint32_t>(index);
    least = index + 1;
  }
  if (at != code.size())
    return Corrupt("delta code: expected " + std::to_string(at) + " bytes, found " +
                   std::to_string(code.size()));
  return {};
}

}  // namespace slimgrad::kernels::cpu
