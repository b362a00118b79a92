#include "comm/traffic.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace slimgrad {

TrafficRow& TrafficRow::operator+=(const TrafficRow& other) {
  SLIMGRAD_CHECK(sent.size() == other.sent.size());
  for (std::size_t r = 0; r < sent.size(); ++r) {
    sent[r] += other.sent[r];
    received[r] += other.received[r];
  }
  return *this;
}

void TrafficRow::Clear() {
  std::fill(sent.begin(), sent.end(), 0);
  std::fill(received.begin(), received.end(), 0);
}

std::uint64_t TrafficRow::SentByAll() const {
  return std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
}

std::uint64_t TrafficRow::ReceivedByAll() const {
  return std::accumulate(received.begin(), received.end(), std::uint64_t{0});
}

Traffic& Traffic::operator+=(const Traffic& other) {
  finite_check += other.finite_check;
  while (rounds.size() < other.rounds.size())
    rounds.emplace_back(static_cast<int>(finite_check.sent.size()));
  for (std::size_t r = 0; r < other.rounds.size(); ++r) rounds[r] += other.rounds[r];
  return *this;
}

void Traffic::Clear() {
  finite_check.Clear();
  for (TrafficRow& row : rounds) row.Clear();
}

TrafficRow Traffic::Total() const {
  TrafficRow total = finite_check;
  for (const TrafficRow& row : rounds) total += row;
  return total;
}

}  // namespace slimgrad
