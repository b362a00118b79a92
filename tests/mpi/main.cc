// GoogleTest's main for tests that mpirun starts: every rank runs the same cases.
//
// Each rank prints its own failures, with its rank in front; rank 0 prints which cases ran and
// writes the XML. A case that failed on another rank fails on rank 0 too, and every rank's failure
// makes its exit status 1, which mpirun hands on.
#include <mpi.h>

#include <cstdio>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace {

class RankPrinter final : public testing::EmptyTestEventListener {
 public:
  explicit RankPrinter(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::ostringstream text;
    text << (part.file_name() ? part.file_name() : "?") << ":" << part.line_number() << ": "
         << part.message();
    // Each line with the rank, and in one write: the ranks share an output.
    std::string out, line;
    for (std::istringstream lines(text.str()); std::getline(lines, line);)
      out += "[rank " + std::to_string(rank_) + "] " + line + "\n";
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
  }

  void OnTestEnd(const testing::TestInfo& info) override {
    const int failed = info.result()->Failed() ? 1 : 0;
    int all = 0;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank_ != 0) return;
    std::printf("%s %s.%s (%lld ms)\n", all > 0 ? "FAILED" : "ok    ", info.test_suite_name(),
                info.name(), static_cast<long long>(info.result()->elapsed_time()));
    std::fflush(stdout);
    if (all > failed) ADD_FAILURE() << "the case failed on " << all - failed << " other ranks";
  }

  int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank != 0) GTEST_FLAG_SET(output, "");  // before the next line, which reads it
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankPrinter(rank));
  if (rank == 0) std::printf("%d ranks\n", size);
  const int status = RUN_ALL_TESTS();
  MPI_Finalize();
  return status;
}
