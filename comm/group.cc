#include "comm/group.h"

namespace slimgrad {

Chunk ChunkOf(std::size_t count, int size, int rank) {
  const auto n = static_cast<std::size_t>(size), r = static_cast<std::size_t>(rank);
  const std::size_t base = count / n, longer = count % n;
  const std::size_t begin = r * base + (r < longer ? r : longer);
  return {begin, begin + base + (r < longer)};
}

void CountAllGather(std::span<const Bytes> messages, std::span<const int> ranks,
                    TrafficRow& traffic) {
  std::size_t all = 0;
  for (const Bytes& message : messages) all += message.size();
  for (const int rank : ranks) {
    const auto r = static_cast<std::size_t>(rank);
    traffic.sent[r] += messages[r].size() * (messages.size() - 1);
    traffic.received[r] += all - messages[r].size();
  }
}

void CountAllCombine(std::size_t count, std::size_t element_bytes, int size,
                     std::span<const int> ranks, TrafficRow& traffic) {
  for (const int rank : ranks) {
    const auto r = static_cast<std::size_t>(rank);
    const std::size_t own = ChunkOf(count, size, rank).size();
    const std::size_t moved =
        ((count - own) + own * static_cast<std::size_t>(size - 1)) * element_bytes;
    traffic.sent[r] += moved;
    traffic.received[r] += moved;
  }
}

}  // namespace slimgrad
