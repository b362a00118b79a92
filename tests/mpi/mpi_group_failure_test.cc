// Ranks that do not come, that leave, and that disagree: all are alive, so that the cases can go
// on. Those that die are in lost_rank_test.sh.
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "core/buffer.h"
#include "tests/mpi/world.h"

namespace slimgrad {
namespace {

using kernels::CombineOp;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

Status Gather(Group& group, std::size_t bytes = 8) {
  Buffer<std::byte> memory(bytes);
  const Bytes mine = memory.span();
  TrafficRow row(group.size());
  Status status = group.AllGather({&mine, 1}, row).status();
  if (group.HoldsMemory()) Abandon(std::move(memory));
  return status;
}
Status Combine(Group& group, CombineOp op, DType dtype, std::size_t bytes) {
  Buffer<std::byte> memory(bytes), result(bytes);
  const Bytes mine = memory.span();
  TrafficRow row(group.size());
  Status status = group.AllCombine(op, dtype, {&mine, 1}, result.span(), row);
  if (group.HoldsMemory()) {
    Abandon(std::move(memory));
    Abandon(std::move(result));
  }
  return status;
}
Status CombineFloats(Group& group, std::size_t bytes = 24) {
  return Combine(group, CombineOp::kMean, DType::kF32, bytes);
}

class MpiGroupFailure : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(WorldSize(), 2); }
};

void ExpectUnusable(Group& group, const Status& error) {
  const auto begin = Clock::now();
  for (const Status& status : {Gather(group), CombineFloats(group)}) {
    EXPECT_EQ(status.code(), error.code());
    EXPECT_EQ(status.message(), error.message());
  }
  EXPECT_LT(Clock::now() - begin, kPatience);
}

TEST_F(MpiGroupFailure, NamesARankThatNeverComes) {
  for (const bool combine : {false, true}) {
    const auto group = MustJoin(MPI_COMM_WORLD, milliseconds(500));
    Status status;
    if (!IsLast()) {
      const auto begin = Clock::now();
      status = combine ? CombineFloats(*group) : Gather(*group);
      EXPECT_GE(Clock::now() - begin, milliseconds(400));  // another rank may have begun before
      EXPECT_LT(Clock::now() - begin, kPatience);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (IsLast()) status = Gather(*group);  // at once: the others have told it
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_EQ(status.message(), LastRank() + " did not come within 500 ms");
    ExpectUnusable(*group, status);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(MpiGroupFailure, NamesAllRanksThatAreMissing) {
  if (WorldSize() < 3) GTEST_SKIP() << "needs three ranks";
  const auto group = MustJoin(MPI_COMM_WORLD, milliseconds(500));
  if (WorldRank() == 1) {
    std::string missing = "0";
    for (int rank = 2; rank < WorldSize(); ++rank) missing += ", " + std::to_string(rank);
    EXPECT_EQ(Gather(*group).message(), "rank " + missing + " did not come within 500 ms");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Each rank comes when the first has waited for most of the timeout; only the one that does not
// come at all is named, since ranks that wait say that they are there.
TEST_F(MpiGroupFailure, RanksThatWaitAreNotNamed) {
  const auto group = MustJoin(MPI_COMM_WORLD, milliseconds(800));
  if (!IsLast()) {
    if (WorldRank() > 0) std::this_thread::sleep_for(milliseconds(500));
    EXPECT_EQ(Gather(*group).message(), LastRank() + " did not come within 800 ms");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(MpiGroupFailure, NamesARankThatHasLeftAtOnce) {
  for (const bool combine : {false, true}) {
    auto group = MustJoin(MPI_COMM_WORLD, std::chrono::hours(1));
    EXPECT_TRUE(Gather(*group).ok());
    EXPECT_TRUE(CombineFloats(*group, 400'000).ok());  // leaving after a call spoils nothing
    if (IsLast()) {
      group.reset();
    } else {
      const Status status = combine ? CombineFloats(*group) : Gather(*group);
      EXPECT_EQ(status.code(), Code::kPeerLost);
      EXPECT_EQ(status.message(), LastRank() + " has left the group");
      ExpectUnusable(*group, status);
    }
  }
}

TEST_F(MpiGroupFailure, ARankThatDoesNotMakeTheGroupIsMissed) {
  MPI_Comm apart = MPI_COMM_NULL;  // MPI still waits for the rank there: it is left as it is
  MPI_Comm_dup(MPI_COMM_WORLD, &apart);
  if (!IsLast()) {
    const Status status = MpiGroup::Create(apart, milliseconds(500)).status();
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_EQ(status.message(), "a rank did not come to make the group within 500 ms");
  }
}

TEST_F(MpiGroupFailure, TheLongestTimeoutIsNoTimeout) {
  const auto group = MustJoin(MPI_COMM_WORLD, milliseconds::max());
  if (IsLast()) std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(Gather(*group).ok());
}

struct Disagreement {
  std::string name, message;  // of the last rank
  std::function<Status(Group&)> odd;
};

class MpiGroupDisagreement : public MpiGroupFailure,
                             public testing::WithParamInterface<Disagreement> {};

TEST_P(MpiGroupDisagreement, IsAMismatchOnAllRanksAndNothingHangs) {
  for (const int odd : {0, WorldSize() - 1}) {
    const auto group = MustJoin();
    const auto begin = Clock::now();
    const Status status = WorldRank() == odd ? GetParam().odd(*group) : CombineFloats(*group);
    EXPECT_LT(Clock::now() - begin, kPatience);
    EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
    if (odd > 0) {
      EXPECT_EQ(status.message(), LastRank() + GetParam().message);
    }
    ExpectUnusable(*group, status);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, MpiGroupDisagreement,
    testing::Values(
        Disagreement{"bytes", ": bytes to combine: expected 24 as on rank 0, found 20",
                     [](Group& g) { return CombineFloats(g, 20); }},
        Disagreement{"op", " is in another call than rank 0",
                     [](Group& g) { return Combine(g, CombineOp::kMax, DType::kF32, 24); }},
        Disagreement{"dtype", " is in another call than rank 0",
                     [](Group& g) { return Combine(g, CombineOp::kMean, DType::kF16, 24); }},
        Disagreement{"gather", " is in another call than rank 0",
                     [](Group& g) { return Gather(g, 24); }}),
    [](const auto& test) { return test.param.name; });

TEST_F(MpiGroupFailure, ARankThatStopsWithinACallIsNamed) {
  Slow slow(milliseconds(1500));
  const MpiOptions options = {.backend = {.executor = IsLast() ? &slow : &InlineExecutor()}};
  const auto group = MustJoin(MPI_COMM_WORLD, milliseconds(500), options);
  const auto begin = Clock::now();
  const Status status = CombineFloats(*group, std::size_t{4} << 20);
  if (!IsLast()) {
    EXPECT_LT(Clock::now() - begin, milliseconds(1500));
  }
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_EQ(status.message(), LastRank() + " sent and took nothing within 500 ms");
  MPI_Barrier(MPI_COMM_WORLD);
}

// Three waits of less than the timeout, and longer together.
TEST_F(MpiGroupFailure, TimeIsMeasuredByTheCall) {
  const auto group = MustJoin(MPI_COMM_WORLD, milliseconds(900));
  for (int turn = 0; turn < 3; ++turn) {
    if (IsLast()) std::this_thread::sleep_for(milliseconds(400));
    ASSERT_TRUE(Gather(*group).ok());
  }
}

}  // namespace
}  // namespace slimgrad
