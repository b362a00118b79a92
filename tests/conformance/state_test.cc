// State goes on where it stopped: saved, loaded into a fresh exchange and into a fresh process, bit
// for bit. The test program starts itself again with --resume to be that process.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/conformance/harness.h"

extern char** environ;

namespace slimgrad::conformance {
namespace {

constexpr int kWorld = 3;
constexpr std::uint64_t kStop = 3, kEnd = 6;
constexpr std::uint64_t kSeed = 42;

Gradients GradientsOfStepN(std::uint64_t step) {
  return RandomGradients(UsualTensors(), kWorld, 100 + step);
}

Bytestring Saved(Ranks& ranks, int rank) {
  const auto state = ranks.exchange().SaveState(static_cast<std::size_t>(rank));
  EXPECT_TRUE(state.ok()) << state.status().message();
  return *state;
}

Ranks RanksOf(const std::string& spec) {
  return Ranks(spec, kWorld, UsualTensors(), {.seed = kSeed});
}

void Restore(Ranks& ranks, const std::vector<Bytestring>& files) {
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    const Status status = ranks.exchange().RestoreState(rank, files[rank]);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

// Runs until kEnd; returns every average on the way and the states at the end, as bytes.
Bytestring Finish(Ranks& ranks) {
  Bytestring all;
  for (std::uint64_t step = ranks.exchange().next_step(); step < kEnd; ++step) {
    ranks.MustStep(GradientsOfStepN(step));
    for (const Values& average : ranks.averages()[0]) {
      const auto bytes = std::as_bytes(std::span(average));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  }
  for (int rank = 0; rank < kWorld; ++rank) {
    const Bytestring state = Saved(ranks, rank);
    all.insert(all.end(), state.begin(), state.end());
  }
  return all;
}

void Write(const std::string& path, const Bytestring& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytestring Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string StatePath(const std::string& folder, std::size_t rank) {
  return folder + "/state." + std::to_string(rank);
}

// The fresh process: loads what lies in `folder`, goes on and leaves what came of it there.
int Resume(const std::string& spec, const std::string& folder) {
  Ranks ranks = RanksOf(spec);
  std::vector<Bytestring> files;
  for (std::size_t rank = 0; rank < kWorld; ++rank) files.push_back(Read(StatePath(folder, rank)));
  Restore(ranks, files);
  Write(folder + "/result", Finish(ranks));
  return ::testing::Test::HasFailure() ? 1 : 0;
}

int RunFreshProcess(const std::string& spec, const std::string& folder) {
  std::string program = "/proc/self/exe", flag = "--resume", spec_text = spec, path = folder;
  char* const arguments[] = {program.data(), flag.data(), spec_text.data(), path.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

class StateSurvives : public ForEverySpec {};

TEST_P(StateSurvives, AFreshExchange) {
  Ranks unbroken = RanksOf(spec());
  for (std::uint64_t step = 0; step < kStop; ++step) unbroken.MustStep(GradientsOfStepN(step));
  std::vector<Bytestring> files;
  for (int rank = 0; rank < kWorld; ++rank) files.push_back(Saved(unbroken, rank));

  Ranks resumed = RanksOf(spec());
  Restore(resumed, files);
  EXPECT_EQ(resumed.exchange().next_step(), kStop);
  for (int rank = 0; rank < kWorld; ++rank)
    EXPECT_TRUE(Saved(resumed, rank) == files[static_cast<std::size_t>(rank)]);
  EXPECT_TRUE(Finish(resumed) == Finish(unbroken));
}

TEST_P(StateSurvives, AFreshProcess) {
  Ranks unbroken = RanksOf(spec());
  for (std::uint64_t step = 0; step < kStop; ++step) unbroken.MustStep(GradientsOfStepN(step));
  const std::string folder = ::testing::TempDir() + "/" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                             std::to_string(getpid());
  std::filesystem::create_directories(folder);
  // Reused paths must not make an old result pass for a new one.
  std::filesystem::remove(folder + "/result");
  for (std::size_t rank = 0; rank < kWorld; ++rank)
    Write(StatePath(folder, rank), Saved(unbroken, static_cast<int>(rank)));
  EXPECT_EQ(RunFreshProcess(spec(), folder), 0);
  const Bytestring result = Read(folder + "/result");
  EXPECT_FALSE(result.empty());
  EXPECT_TRUE(result == Finish(unbroken));
  std::filesystem::remove_all(folder);
}

// What does not belong is refused and changes nothing.
TEST_P(StateSurvives, RefusesAnotherRankSeedOrWorld) {
  Ranks ranks = RanksOf(spec());
  ranks.MustStep(GradientsOfStepN(0));
  const Bytestring file = Saved(ranks, 1);
  const auto expect_refused = [&](Ranks& other, std::size_t rank, const char* field) {
    const auto before = other.Fields(static_cast<int>(rank));
    const Status status = other.exchange().RestoreState(rank, file);
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_NE(status.message().find(field), std::string::npos) << status.message();
    EXPECT_EQ(other.Fields(static_cast<int>(rank)), before);
    EXPECT_EQ(other.exchange().next_step(), 0U);
  };
  Ranks rank = RanksOf(spec());
  expect_refused(rank, 2, "rank");
  Ranks seed(spec(), kWorld, UsualTensors(), {.seed = kSeed + 1});
  expect_refused(seed, 1, "seed");
  Ranks world(spec(), 2, UsualTensors(), {.seed = kSeed});
  expect_refused(world, 1, "world");
  Ranks tensors(spec(), kWorld, Tensors({{16, 18}, {97}, {3, 3}}), {.seed = kSeed});
  expect_refused(tensors, 1, "tensors");
  Ranks other_spec("error_feedback(top_k(k=1))", kWorld, UsualTensors(), {.seed = kSeed});
  expect_refused(other_spec, 1, "spec");
}

TEST_P(StateSurvives, NotWithARankLeftBehind) {
  Ranks ranks = RanksOf(spec());
  ranks.MustStep(GradientsOfStepN(0));
  Ranks fresh = RanksOf(spec());
  ASSERT_TRUE(fresh.exchange().RestoreState(0, Saved(ranks, 0)).ok());
  EXPECT_EQ(fresh.Step(GradientsOfStepN(1)).code(), Code::kMismatch);
}

SLIMGRAD_FOR_EVERY_SPEC(StateSurvives);

}  // namespace

int ResumeMain(const char* spec, const char* folder) { return Resume(spec, folder); }

}  // namespace slimgrad::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 4 && std::strcmp(argv[1], "--resume") == 0)
    return slimgrad::conformance::ResumeMain(argv[2], argv[3]);
  return RUN_ALL_TESTS();
}
