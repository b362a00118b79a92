// One of several ranks, the last, is lost in the middle of calls; the others say what they got and
// leave. lost_rank_test.sh runs this by mpirun and reads it.
//
// usage: lost_rank combine|gather|stop
//   combine  killed while it combines: the others have sent it their parts and wait for its chunk
//   gather   killed at any time
//   stop     stopped at any time: its connections stay open. Rank 0 kills it in the end
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/mpi_group.h"
#include "core/buffer.h"
#include "core/executor.h"

namespace slimgrad {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeout(1500);
constexpr std::size_t kBytes = std::size_t{4} << 20;

class Deadly final : public Executor {
 public:
  int concurrency() const override { return 2; }

 private:
  void Run(std::size_t, TaskFunction, void*) override { std::raise(SIGKILL); }
};

Status Call(Group& group, bool combine, Bytes mine, std::span<std::byte> result) {
  TrafficRow row(group.size());
  if (!combine) return group.AllGather({&mine, 1}, row).status();
  return group.AllCombine(kernels::CombineOp::kMean, DType::kF32, {&mine, 1}, result, row);
}

// Every rank's process, to kill the stopped one by.
std::vector<pid_t> Processes(Group& group) {
  const pid_t own = getpid();
  const Bytes mine = std::as_bytes(std::span(&own, 1));
  TrafficRow row(group.size());
  const auto all = group.AllGather({&mine, 1}, row);
  if (!all.ok()) std::abort();
  std::vector<pid_t> processes(all->size());
  for (std::size_t r = 0; r < processes.size(); ++r)
    std::memcpy(&processes[r], (*all)[r].data(), sizeof(pid_t));
  return processes;
}

int Run(std::string_view way) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool last = rank == size - 1, combine = way == "combine";
  Deadly deadly;
  MpiOptions options;
  if (combine && last) options.backend.executor = &deadly;
  auto made = MpiGroup::Create(MPI_COMM_WORLD, kTimeout, options);
  if (!made.ok()) return 2;
  Group& group = **made;
  const std::vector<pid_t> processes = Processes(group);
  const Buffer<std::byte> memory(kBytes), result(kBytes);
  std::thread end;
  if (last && !combine)
    end = std::thread([stop = way == "stop"] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::raise(stop ? SIGSTOP : SIGKILL);
    });
  for (;;) {
    const auto begin = Clock::now();
    const Status status = Call(group, combine, memory.span(), result.span());
    if (status.ok()) continue;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    std::printf("rank %d after %d ms: %s: %s\n", rank, static_cast<int>(ms.count()),
                std::string(CodeName(status.code())).c_str(), status.message().c_str());
    break;
  }
  made->reset();  // does not wait for the lost one for long
  std::printf("rank %d has left\n", rank);
  std::fflush(stdout);
  if (way == "stop" && rank == 0) {
    std::this_thread::sleep_for(kTimeout);  // the others leave too
    kill(processes.back(), SIGKILL);
  }
  return 0;
}

}  // namespace
}  // namespace slimgrad

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // MPI_Finalize would wait for the rank that is lost.
  std::_Exit(argc == 2 ? slimgrad::Run(argv[1]) : 2);
}
