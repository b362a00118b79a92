// Groups of processes do what every group must, in one piece or many, over all ranks or some.
#include "comm/mpi_group.h"

#include <climits>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.h"
#include "tests/comm/group_cases.h"
#include "tests/core/allocations.h"
#include "tests/mpi/world.h"

namespace slimgrad {
namespace {

using kernels::CombineOp;

TEST(MpiGroup, KnowsItsRanks) {
  const auto group = MustJoin();
  EXPECT_EQ(group->size(), WorldSize());
  ASSERT_EQ(group->local_ranks().size(), 1U);
  EXPECT_EQ(group->local_ranks()[0], WorldRank());
}

TEST(MpiGroup, AllGatherBringsEveryMessage) {
  const auto group = MustJoin();
  GatherTurns(*group);
}

TEST(MpiGroup, AllCombineIsTheReferenceBitForBit) {
  const auto group = MustJoin();
  for (const Pair pair : kPairs)
    for (const std::size_t count : kCounts)
      CombineAndCompare(*group, pair, count, Expected(pair, count, WorldSize()));
}

TEST(MpiGroup, ManyCallsOfBothKindsInARow) {
  const auto group = MustJoin();
  ManyCallsInARow(*group);
}

// As messages of more than INT_MAX bytes are: with a remainder, and with pieces of part of an
// element.
TEST(MpiGroup, LongMessagesTravelInPieces) {
  for (const std::size_t piece_bytes : {1, 7, 64}) {
    const auto group = MustJoin(MPI_COMM_WORLD, kPatience, {.piece_bytes = piece_bytes});
    GatherTurns(*group);
    for (const Pair pair : {kPairs[0], kPairs[1]})
      for (const std::size_t count : {std::size_t{64}, std::size_t{1001}})
        CombineAndCompare(*group, pair, count, Expected(pair, count, WorldSize()));
  }
}

// Beyond what MPI sends before the receiver asks for it.
TEST(MpiGroup, CombinesLargeMessages) {
  const auto group = MustJoin();
  const std::size_t count = 1'000'003;
  const std::vector<std::byte> expected = Expected(kPairs[0], count, WorldSize());
  for (int turn = 0; turn < 3; ++turn) CombineAndCompare(*group, kPairs[0], count, expected);
}

TEST(MpiGroup, IsOverItsCommunicator) {
  // Pairs, in the reverse order of the world; of an odd world the last is alone.
  const int key = WorldSize() - 1 - WorldRank();
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, key / 2, key, &pair);
  {
    const auto group = MustJoin(pair);
    EXPECT_EQ(group->local_ranks()[0], key % 2);
    const auto world = MustJoin();  // groups do not hear each other
    GatherTurns(*group);
    GatherTurns(*world);
    if (group->size() == 2) CombineByHand(*group);
  }
  MPI_Comm_free(&pair);
}

TEST(MpiGroup, SteadyCallsTakeNothingFromTheHeap) {
  const auto group = MustJoin();
  const Buffer<std::byte> memory(5000), result(5000);
  const Bytes mine = memory.span();
  TrafficRow row(group->size());
  const auto step = [&] {
    return group->AllGather({&mine, 1}, row).ok() &&
           group->AllCombine(CombineOp::kMean, DType::kF32, {&mine, 1}, result.span(), row).ok();
  };
  ASSERT_TRUE(step());
  const std::uint64_t before = AllocationsOfThisThread();
  for (int turn = 0; turn < 5; ++turn) ASSERT_TRUE(step());
  EXPECT_EQ(AllocationsOfThisThread() - before, 0U);
}

// Each group gives back its communicator, of which MPI has few.
TEST(MpiGroup, ComesAndGoes) {
  for (int turn = 0; turn < 60; ++turn) {
    const auto group = MustJoin();
    const std::byte own{static_cast<unsigned char>(WorldRank())};
    const Bytes mine(&own, 1);
    TrafficRow row(group->size());
    const auto all = group->AllGather({&mine, 1}, row);
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_EQ((*all)[static_cast<std::size_t>(WorldSize() - 1)][0],
              static_cast<std::byte>(WorldSize() - 1));
  }
}

TEST(MpiGroup, RefusesWhatCannotBe) {
  const auto error = [](MPI_Comm communicator, const MpiOptions& options) {
    return MpiGroup::Create(communicator, kPatience, options).status();
  };
  EXPECT_EQ(error(MPI_COMM_NULL, {}).message(),
            "communicator: expected one with this process, found MPI_COMM_NULL");
  EXPECT_EQ(error(MPI_COMM_WORLD, {.piece_bytes = 0}).message(),
            "piece_bytes: expected 1 to 2147483647, found 0");
  EXPECT_EQ(error(MPI_COMM_WORLD, {.piece_bytes = std::size_t{INT_MAX} + 1}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(error(MPI_COMM_WORLD, {.backend = {.device = Device::kCuda}}).code(),
            Code::kUnsupported);
}

}  // namespace
}  // namespace slimgrad
