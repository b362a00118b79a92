// Groups of the processes that mpirun has started.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "comm/mpi_group.h"

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

inline std::unique_ptr<MpiGroup> MustJoin(MPI_Comm communicator = MPI_COMM_WORLD,
                                          std::chrono::milliseconds timeout = kPatience,
                                          const MpiOptions& options = {}) {
  auto made = MpiGroup::Create(communicator, timeout, options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

}  // namespace slimgrad
