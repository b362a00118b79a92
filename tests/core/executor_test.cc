#include "core/executor.h"

#include <atomic>
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
