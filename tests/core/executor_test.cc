#include "core/executor.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

void ExpectEachOnce(Executor& executor, std::size_t tasks) {
  std::vector<std::atomic<int>> runs(tasks);
  executor.ParallelFor(tasks, [&](std::size_t i) { ++runs.at(i); });
  for (std::size_t i = 0; i < tasks; ++i) EXPECT_EQ(runs[i], 1) << "task " << i << " of " << tasks;
}

TEST(Executor, RunsEachTaskOnce) {
  for (const std::size_t tasks : {0, 1, 2, 3, 7, 1000}) {
    ExpectEachOnce(InlineExecutor(), tasks);
    for (const int threads : {1, 2, 4, 16}) {
      PoolExecutor executor(threads);
      ExpectEachOnce(executor, tasks);
    }
  }
}

TEST(Executor, InlineStaysOnTheCallersThreadInOrder) {
  std::vector<std::size_t> order;
  const auto caller = std::this_thread::get_id();
  InlineExecutor().ParallelFor(4, [&](std::size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(InlineExecutor().concurrency(), 1);
}

TEST(Executor, ThreadsRunTogether) {
  // Each task waits for the other: one thread alone would wait for ever.
  PoolExecutor executor(2);
  std::atomic<int> arrived = 0;
  executor.ParallelFor(2, [&](std::size_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
  EXPECT_EQ(executor.concurrency(), 2);
}

TEST(Executor, ManyCallersShareAPool) {
  PoolExecutor executor(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) ExpectEachOnce(executor, 17);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Executor, ATaskMayCallThePoolItself) {
  PoolExecutor executor(3);
  std::atomic<int> runs = 0;
  executor.ParallelFor(8,
                       [&](std::size_t) { executor.ParallelFor(8, [&](std::size_t) { ++runs; }); });
  EXPECT_EQ(runs, 64);
}

// Three deep, each level in the other pool: workers of either come to wait for the other's, if any
// waits at all.
TEST(Executor, PoolsMayCallEachOther) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    PoolExecutor one(3), other(3);
    std::atomic<int> runs = 0;
    one.ParallelFor(6, [&](std::size_t) {
      other.ParallelFor(6, [&](std::size_t) { one.ParallelFor(6, [&](std::size_t) { ++runs; }); });
    });
    EXPECT_EQ(runs, 6 * 6 * 6);
  }
}

TEST(Executor, TasksOfATaskRunInline) {
  PoolExecutor executor(3), another(3);
  executor.ParallelFor(8, [&](std::size_t) {
    const auto thread = std::this_thread::get_id();
    for (Executor* inner : {&executor, &another})
      inner->ParallelFor(8, [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), thread); });
  });
}

// In a child process: the limit is on its address space, of which every thread's stack takes a
// part. Prints how many threads there were of those asked for.
[[noreturn]] void StartTooManyThreads() {
  std::ifstream pages("/proc/self/statm");
  std::size_t used = 0;
  pages >> used;
  const rlim_t limit = used * 4096 + (std::size_t{64} << 20);
  const rlimit limits = {limit, limit};
  if (setrlimit(RLIMIT_AS, &limits) != 0) std::exit(2);
  {
    PoolExecutor executor(1000);
    const int threads = executor.concurrency();
    std::atomic<int> runs = 0;
    executor.ParallelFor(100, [&](std::size_t) { ++runs; });
    std::fprintf(stderr, "%s threads, %d tasks\n", threads < 1000 ? "fewer" : "all", runs.load());
  }
  std::exit(0);
}

TEST(ExecutorDeathTest, WhereThreadsDoNotStartThereAreFewer) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer alone takes more";
#endif
  EXPECT_EXIT(StartTooManyThreads(), ::testing::ExitedWithCode(0), "fewer threads, 100 tasks");
}

TEST(ExecutorDeathTest, AtLeastOneThread) { EXPECT_DEATH(PoolExecutor(0), "check failed"); }

TEST(Executor, BorrowsATaskThatCannotBeCopied) {
  struct Counter {
    Counter() = default;
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    void operator()(std::size_t) { ++count; }
    std::atomic<int> count = 0;
  };
  Counter counter;
  InlineExecutor().ParallelFor(5, counter);
  EXPECT_EQ(counter.count, 5);
}

}  // namespace
}  // namespace slimgrad
