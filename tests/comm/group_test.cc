// What every group must do, checked over all of them with the same code.
#include "comm/group.h"

#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.h"
#include "tests/comm/ranks.h"

namespace slimgrad {
namespace {

using kernels::CombineOp;

struct Pair {
  CombineOp op;
  DType dtype;
};
constexpr Pair kPairs[] = {{CombineOp::kMean, DType::kF32},  {CombineOp::kMean, DType::kF16},
                           {CombineOp::kMean, DType::kBF16}, {CombineOp::kSum, DType::kI32},
                           {CombineOp::kSum, DType::kU64},   {CombineOp::kMax, DType::kF32},
                           {CombineOp::kMax, DType::kU8}};
constexpr std::size_t kCounts[] = {0, 1, 2, 3, 5, 7, 8, 64, 1001};

// What all ranks' rows add up to.
class Ledger {
 public:
  explicit Ledger(int world) : total_(world) {}
  void Add(const TrafficRow& row) {
    const std::lock_guard lock(mutex_);
    total_ += row;
  }
  const TrafficRow& total() const { return total_; }

 private:
  std::mutex mutex_;
  TrafficRow total_;
};

// Rank r's message in a turn: every length from none to a few alignments, different on each rank.
Buffer<std::byte> Message(int rank, int turn) {
  const int length = (rank * 7 + turn * 13) % 40;
  Buffer<std::byte> message(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i)
    message.span()[static_cast<std::size_t>(i)] = std::byte((rank * 31 + turn * 5 + i) & 0xff);
  return message;
}

constexpr int kTurns = 41;  // 0 to 40: on each rank, in some turn, a message is empty

void GatherTurns(Group& group, Ledger& ledger) {
  TrafficRow row(group.size());
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<Buffer<std::byte>> memory;
    std::vector<Bytes> mine;
    for (const int rank : group.local_ranks()) {
      memory.push_back(Message(rank, turn));
      mine.emplace_back(memory.back().span());
    }
    const auto all = group.AllGather(mine, row);
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all->size(), static_cast<std::size_t>(group.size()));
    for (int rank = 0; rank < group.size(); ++rank) {
      const Bytes found = (*all)[static_cast<std::size_t>(rank)];
      const Buffer<std::byte> expected = Message(rank, turn);
      ASSERT_EQ(found.size(), expected.size());
      if (found.empty()) continue;
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.data()) % kMessageAlignment, 0U);
    }
  }
  ledger.Add(row);
}

TEST(Group, KnowsItsRanks) {
  for (const Kind kind : kKinds)
    for (const int world : kWorlds) {
      std::mutex mutex;
      std::vector<int> seen(static_cast<std::size_t>(world));
      RunRanks(kind, world, [&](Group& group) {
        EXPECT_EQ(group.size(), world);
        ASSERT_FALSE(group.local_ranks().empty());
        const std::lock_guard lock(mutex);
        for (const int rank : group.local_ranks()) ++seen.at(static_cast<std::size_t>(rank));
      });
      EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(world), 1));
    }
}

TEST(Group, AllGatherBringsEveryMessage) {
  for (const Kind kind : kKinds)
    for (const int world : kWorlds) {
      Ledger ledger(world);
      RunRanks(kind, world, [&](Group& group) { GatherTurns(group, ledger); });
      // A rank sends its message to each other rank and takes each other rank's.
      std::vector<std::uint64_t> length(static_cast<std::size_t>(world));
      std::uint64_t all = 0;
      for (int rank = 0; rank < world; ++rank)
        for (int turn = 0; turn < kTurns; ++turn)
          length[static_cast<std::size_t>(rank)] += Message(rank, turn).size();
      for (const std::uint64_t l : length) all += l;
      const TrafficRow& total = ledger.total();
      for (std::size_t r = 0; r < length.size(); ++r) {
        EXPECT_EQ(total.sent[r], length[r] * static_cast<std::uint64_t>(world - 1));
        EXPECT_EQ(total.received[r], all - length[r]);
      }
      EXPECT_EQ(total.SentByAll(), total.ReceivedByAll());
    }
}

// Rank r's values: finite, with ties between ranks, so that the order matters.
Buffer<std::byte> Values(Pair pair, std::size_t count, int rank) {
  Buffer<std::byte> memory(count * SizeOf(pair.dtype));
  std::mt19937 random(static_cast<unsigned>(rank) + 100);
  std::normal_distribution<float> normal(0, 1000);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* to = &memory.span()[i * SizeOf(pair.dtype)];
    if (pair.dtype == DType::kF32) {
      const float value = normal(random);
      std::memcpy(to, &value, sizeof value);
    } else if (pair.dtype == DType::kF16 || pair.dtype == DType::kBF16) {
      // Around 1 in both types, of either sign.
      const auto bits = static_cast<std::uint16_t>((random() & 0x80ffU) | 0x3000U);
      std::memcpy(to, &bits, sizeof bits);
    } else {
      for (std::size_t b = 0; b < SizeOf(pair.dtype); ++b) to[b] = std::byte(random() & 0xff);
    }
  }
  return memory;
}

std::vector<std::byte> Expected(Pair pair, std::size_t count, int world) {
  std::vector<Buffer<std::byte>> memory;
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < world; ++rank) memory.push_back(Values(pair, count, rank));
  for (const auto& values : memory) inputs.emplace_back(values.span());
  std::vector<std::byte> result(count * SizeOf(pair.dtype));
  kernels::ref::Combine({}, pair.op, pair.dtype, inputs, result);
  return result;
}

void CombineAndCompare(Group& group, Pair pair, std::size_t count,
                       const std::vector<std::byte>& expected, Ledger& ledger) {
  std::vector<Buffer<std::byte>> memory;
  std::vector<Bytes> mine;
  for (const int rank : group.local_ranks()) memory.push_back(Values(pair, count, rank));
  for (const auto& values : memory) mine.emplace_back(values.span());
  const Buffer<std::byte> result(expected.size());
  TrafficRow row(group.size());
  const Status status = group.AllCombine(pair.op, pair.dtype, mine, result.span(), row);
  ASSERT_TRUE(status.ok()) << status.message();
  if (!expected.empty()) {
    EXPECT_EQ(std::memcmp(result.data(), expected.data(), expected.size()), 0)
        << NameOf(pair.dtype) << " op " << static_cast<int>(pair.op) << " count " << count;
  }
  ledger.Add(row);
}

TEST(Group, AllCombineIsTheReferenceBitForBit) {
  for (const int world : kWorlds)
    for (const Pair pair : kPairs)
      for (const std::size_t count : kCounts) {
        const std::vector<std::byte> expected = Expected(pair, count, world);
        for (const Kind kind : kKinds) {
          Ledger ledger(world);
          RunRanks(kind, world,
                   [&](Group& group) { CombineAndCompare(group, pair, count, expected, ledger); });
          const auto n = static_cast<std::uint64_t>(world);
          for (std::uint64_t r = 0; r < n; ++r) {
            const std::uint64_t own = count / n + (r < count % n ? 1 : 0);
            const std::uint64_t moved = (count - own + own * (n - 1)) * SizeOf(pair.dtype);
            EXPECT_EQ(ledger.total().sent[r], moved);
            EXPECT_EQ(ledger.total().received[r], moved);
          }
          // 2 (n - 1) / n of the bytes a rank, on average: a dense ring's.
          EXPECT_EQ(ledger.total().SentByAll(), 2 * (n - 1) * count * SizeOf(pair.dtype));
        }
      }
}

TEST(Group, CombinesByHand) {
  for (const Kind kind : kKinds)
    RunRanks(kind, 2, [](Group& group) {
      std::vector<std::vector<float>> values = {{1, -8, 3}, {3, 2, 2}};
      std::vector<Bytes> mine;
      for (const int rank : group.local_ranks())
        mine.push_back(std::as_bytes(std::span(values[static_cast<std::size_t>(rank)])));
      std::vector<float> result(3);
      const auto to = std::as_writable_bytes(std::span(result));
      TrafficRow row(2);
      ASSERT_TRUE(group.AllCombine(CombineOp::kMean, DType::kF32, mine, to, row).ok());
      EXPECT_EQ(result, (std::vector<float>{2, -3, 2.5}));
      ASSERT_TRUE(group.AllCombine(CombineOp::kMax, DType::kF32, mine, to, row).ok());
      EXPECT_EQ(result, (std::vector<float>{3, 2, 3}));
    });
}

TEST(Group, ManyCallsOfBothKindsInARow) {
  for (const Kind kind : kKinds)
    for (const int world : {2, 5}) {
      Ledger ledger(world);
      std::map<std::size_t, std::vector<std::byte>> expected;
      for (const std::size_t count : kCounts) expected[count] = Expected(kPairs[0], count, world);
      RunRanks(kind, world, [&](Group& group) {
        for (int turn = 0; turn < 5; ++turn) {
          GatherTurns(group, ledger);
          for (const std::size_t count : kCounts)
            CombineAndCompare(group, kPairs[0], count, expected.at(count), ledger);
        }
      });
    }
}

TEST(ChunkOf, CutsWithoutHolesAndNearlyEqual) {
  for (const std::size_t count : kCounts)
    for (const int world : kWorlds) {
      std::size_t at = 0;
      for (int rank = 0; rank < world; ++rank) {
        const Chunk chunk = ChunkOf(count, world, rank);
        EXPECT_EQ(chunk.begin, at);
        EXPECT_LE(chunk.size() - count / static_cast<std::size_t>(world), 1U);
        at = chunk.end;
      }
      EXPECT_EQ(at, count);
    }
}

TEST(TrafficRow, AddsUp) {
  TrafficRow a(2), b(2);
  a.sent = {1, 2};
  b.received = {3, 4};
  a += b;
  a += a;
  EXPECT_EQ(a.SentByAll(), 6U);
  EXPECT_EQ(a.ReceivedByAll(), 14U);
  a.Clear();
  EXPECT_EQ(a.sent, (std::vector<std::uint64_t>{0, 0}));
  EXPECT_EQ(a.ReceivedByAll(), 0U);
  EXPECT_DEATH(a += TrafficRow(3), "check failed");
}

TEST(Traffic, AddsRoundsThatTheOtherHas) {
  Traffic a(1), b(1);
  b.finite_check.sent = {1};
  b.rounds = {TrafficRow(1), TrafficRow(1)};
  b.rounds[1].sent = {10};
  a += b;
  a += b;
  ASSERT_EQ(a.rounds.size(), 2U);
  EXPECT_EQ(a.rounds[1].sent[0], 20U);
  EXPECT_EQ(a.Total().SentByAll(), 22U);
  a.Clear();
  EXPECT_EQ(a.Total().SentByAll(), 0U);
  EXPECT_EQ(a.rounds.size(), 2U);
}

}  // namespace
}  // namespace slimgrad
