// Groups of the processes that mpirun has started.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "comm/mpi_group.h"
#include "core/executor.h"

namespace slimgrad {

// Far longer than any test takes: where it runs out, a rank was lost that should not have been.
inline constexpr std::chrono::seconds kPatience{30};

inline int WorldSize() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
inline int WorldRank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline bool IsLast() { return WorldRank() == WorldSize() - 1; }
inline std::string LastRank() { return "rank " + std::to_string(WorldSize() - 1); }

inline std::unique_ptr<MpiGroup> MustJoin(MPI_Comm communicator = MPI_COMM_WORLD,
                                          std::chrono::milliseconds timeout = kPatience,
                                          const MpiOptions& options = {}) {
  auto made = MpiGroup::Create(communicator, timeout, options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

// Makes a rank's part of combining take longer than the timeout.
class Slow final : public Executor {
 public:
  explicit Slow(std::chrono::milliseconds time) : time_(time) {}
  int concurrency() const override { return 2; }

 private:
  void Run(std::size_t tasks, TaskFunction task, void* context) override {
    std::this_thread::sleep_for(time_);
    for (std::size_t i = 0; i < tasks; ++i) task(context, i);
  }
  std::chrono::milliseconds time_;
};

}  // namespace slimgrad
