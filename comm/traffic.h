// Bytes that ranks move to and from other ranks. Groups count here, and nobody else does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slimgrad {

// One kind of exchange, summed over tensors. Indexed by rank; a group fills the rows of the ranks
// that live in it.
struct TrafficRow {
  std::vector<std::uint64_t> sent, received;

  explicit TrafficRow(int world)
      : sent(static_cast<std::size_t>(world)), received(static_cast<std::size_t>(world)) {}
  TrafficRow& operator+=(const TrafficRow& other);
  void Clear();  // to zero bytes
  std::uint64_t SentByAll() const;
  std::uint64_t ReceivedByAll() const;
};

struct Traffic {
  TrafficRow finite_check;         // agreeing whether every gradient is finite
  std::vector<TrafficRow> rounds;  // rounds[r]: round r of every tensor that has one

  explicit Traffic(int world) : finite_check(world) {}
  Traffic& operator+=(const Traffic& other);
  void Clear();
  TrafficRow Total() const;
};

}  // namespace slimgrad
