// What every group must do (group_cases.h), over all of them, and what chunks and traffic are.
#include "comm/group.h"

#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "tests/comm/group_cases.h"
#include "tests/comm/ranks.h"

namespace slimgrad {
namespace {

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
    for (const int world : kWorlds) RunRanks(kind, world, GatherTurns);
}

TEST(Group, AllCombineIsTheReferenceBitForBit) {
  for (const int world : kWorlds)
    for (const Pair pair : kPairs)
      for (const std::size_t count : kCounts) {
        const std::vector<std::byte> expected = Expected(pair, count, world);
        for (const Kind kind : kKinds)
          RunRanks(kind, world,
                   [&](Group& group) { CombineAndCompare(group, pair, count, expected); });
      }
}

TEST(Group, CombinesByHand) {
  for (const Kind kind : kKinds) RunRanks(kind, 2, CombineByHand);
}

TEST(Group, ManyCallsOfBothKindsInARow) {
  for (const Kind kind : kKinds)
    for (const int world : {2, 5}) RunRanks(kind, world, ManyCallsInARow);
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
