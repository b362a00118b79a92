// What only happens between independent ranks: lost ones, late ones, and ranks that disagree.
#include "comm/threads_group.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.h"
#include "tests/comm/ranks.h"

namespace slimgrad {
namespace {

using kernels::CombineOp;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// One call on one rank, with `bytes` bytes of its own.
Status Gather(Group& group, std::size_t bytes = 8) {
  const Buffer<std::byte> memory(bytes);
  const Bytes mine = memory.span();
  TrafficRow row(group.size());
  return group.AllGather({&mine, 1}, row).status();
}
Status Combine(Group& group, CombineOp op, DType dtype, std::size_t bytes) {
  const Buffer<std::byte> memory(bytes), result(bytes);
  const Bytes mine = memory.span();
  TrafficRow row(group.size());
  return group.AllCombine(op, dtype, {&mine, 1}, result.span(), row);
}

// Runs call(group, rank) on every rank and returns what each got.
std::vector<Status> OnAll(std::vector<std::unique_ptr<Group>>& groups,
                          const std::function<Status(Group&, int)>& call) {
  std::vector<Status> statuses(groups.size());
  RunThreads(groups, [&](std::unique_ptr<Group>& group) {
    const int rank = group->local_ranks()[0];
    statuses[static_cast<std::size_t>(rank)] = call(*group, rank);
  });
  return statuses;
}

void ExpectUnusable(std::vector<std::unique_ptr<Group>>& groups, Code code) {
  const auto begin = Clock::now();
  for (const Status& status : OnAll(groups, [](Group&group, int) { return Gather(group); }))
    EXPECT_EQ(status.code(), code);
  for (const Status& status : OnAll(groups, [](Group&group, int) {
         return Combine(group, CombineOp::kSum, DType::kI32, 8);
       }))
    EXPECT_EQ(status.code(), code);
  EXPECT_LT(Clock::now() - begin, kPatience);
}

TEST(ThreadsGroup, NamesARankThatNeverComes) {
  auto groups = MakeThreadsGroups(3, milliseconds(200));
  const auto begin = Clock::now();
  const auto statuses =
      OnAll(groups, [](Group& group, int rank) { return rank == 1 ? Status() : Gather(group); });
  EXPECT_GE(Clock::now() - begin, milliseconds(200));
  EXPECT_LT(Clock::now() - begin, kPatience);
  for (const std::size_t rank : {0, 2}) {
    EXPECT_EQ(statuses[rank].code(), Code::kPeerLost);
    EXPECT_EQ(statuses[rank].message(), "rank 1 did not come within 200 ms");
  }
  ExpectUnusable(groups, Code::kPeerLost);  // for the late rank too
}

TEST(ThreadsGroup, NamesAllRanksThatAreMissing) {
  auto groups = MakeThreadsGroups(4, milliseconds(100));
  EXPECT_EQ(Gather(*groups[2]).message(), "rank 0, 1, 3 did not come within 100 ms");
}

TEST(ThreadsGroup, NamesARankThatHasLeftAtOnce) {
  for (const bool combine : {false, true}) {
    auto groups = MakeThreadsGroups(3, std::chrono::hours(1));
    std::vector<Status> statuses(3);
    RunThreads(groups, [&](std::unique_ptr<Group>& group) {
      const int rank = group->local_ranks()[0];
      EXPECT_TRUE(Gather(*group).ok());  // leaving after a call spoils nothing
      if (rank == 2) {
        group.reset();
      } else {
        statuses[static_cast<std::size_t>(rank)] =
            combine ? Combine(*group, CombineOp::kMean, DType::kF32, 8) : Gather(*group);
      }
    });
    for (const std::size_t rank : {0, 1}) {
      EXPECT_EQ(statuses[rank].code(), Code::kPeerLost);
      EXPECT_EQ(statuses[rank].message(), "rank 2 has left the group");
      EXPECT_EQ(Gather(*groups[rank]).code(), Code::kPeerLost);
    }
  }
}

TEST(ThreadsGroup, TheLongestTimeoutIsNoTimeout) {
  auto groups = MakeThreadsGroups(2, milliseconds::max());
  for (const Status& status : OnAll(groups, [](Group&group, int rank) {
         if (rank == 1) std::this_thread::sleep_for(milliseconds(50));
         return Gather(group);
       }))
    EXPECT_TRUE(status.ok()) << status.message();
}

struct Disagreement {
  std::string name, message;
  std::function<Status(Group&)> odd;
};

class ThreadsGroupDisagreement : public testing::TestWithParam<Disagreement> {};

TEST_P(ThreadsGroupDisagreement, IsAMismatchOnAllRanksAndNothingHangs) {
  for (const int odd : {0, 2}) {
    auto groups = MakeThreadsGroups(3, kPatience);
    const auto begin = Clock::now();
    const auto statuses = OnAll(groups, [&](Group& group, int rank) {
      return rank == odd ? GetParam().odd(group)
                         : Combine(group, CombineOp::kMean, DType::kF32, 24);
    });
    EXPECT_LT(Clock::now() - begin, kPatience);
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
      EXPECT_EQ(status.message(), statuses[0].message());
    }
    if (odd == 2) {
      EXPECT_EQ(statuses[0].message(), GetParam().message);
    }
    ExpectUnusable(groups, Code::kMismatch);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, ThreadsGroupDisagreement,
    testing::Values(
        Disagreement{"bytes", "rank 2: bytes to combine: expected 24 as on rank 0, found 20",
                     [](Group& g) { return Combine(g, CombineOp::kMean, DType::kF32, 20); }},
        Disagreement{"op", "rank 2 is in another call than rank 0",
                     [](Group& g) { return Combine(g, CombineOp::kMax, DType::kF32, 24); }},
        Disagreement{"dtype", "rank 2 is in another call than rank 0",
                     [](Group& g) { return Combine(g, CombineOp::kMean, DType::kF16, 24); }},
        Disagreement{"gather", "rank 2 is in another call than rank 0",
                     [](Group& g) { return Gather(g, 24); }}),
    [](const auto& test) { return test.param.name; });

// Makes one rank's kernels take longer than the timeout.
class SlowOnOneThread final : public Executor {
 public:
  static thread_local bool slow;
  std::atomic<int> slept{0};
  int concurrency() const override { return 2; }

 private:
  void Run(std::size_t tasks, TaskFunction task, void* context) override {
    if (slow) {
      ++slept;
      std::this_thread::sleep_for(milliseconds(1500));
    }
    for (std::size_t i = 0; i < tasks; ++i) task(context, i);
  }
};
thread_local bool SlowOnOneThread::slow = false;

// A rank that has come is not lost, however long its part of the work takes: the others wait, since
// it reads their memory.
TEST(ThreadsGroup, ARankAtWorkIsNotLost) {
  SlowOnOneThread executor;
  auto groups = MakeThreadsGroups(2, milliseconds(1000), Backend{.executor = &executor});
  const auto statuses = OnAll(groups, [](Group& group, int rank) {
    SlowOnOneThread::slow = rank == 1;
    return Combine(group, CombineOp::kMean, DType::kF32, std::size_t{1} << 20);
  });
  EXPECT_GT(executor.slept, 0);
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ThreadsGroupDeathTest, NeedsARank) {
  EXPECT_DEATH(MakeThreadsGroups(0, milliseconds(1)), "check failed");
  EXPECT_DEATH(LockStepGroup(0), "check failed");
}

}  // namespace
}  // namespace slimgrad
