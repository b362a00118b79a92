// The kernels, and loops that only move memory as the kernels do: see README.md.
//
//   bazel run -c opt //benchmarks:kernels -- --benchmark_filter='^f32_to_f16/data:normal/n:1024/'
//
// Names are OPERATION/data:D/n:N/threads:T/simd:S. With no filter: normal data, three sizes, one
// thread, the best instruction set. `--names_from_stdin` first writes the line {"simd": "S"}, the
// best one; then reads lines of names, runs each line's in their order, and answers with a JSON
// document and the line "end": what takes turns with other programs keeps its memory meanwhile.
//
// Counters: bytes_per_second of the fp32 input, ratio = its bytes / those of the output, rel_error
// = |decoded - x| / |x|, wrong = words of the output that differ from ref's. Exit status 1 where
// any did.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/data.h"
#include "benchmarks/operation.h"
#include "core/executor.h"
#include "kernels/simd.h"

namespace slimgrad::benchmarks {
namespace {

struct Entry {
  std::string name;
  const Operation* operation;
  Data data;
  std::size_t n;
  int threads;
  std::string_view simd;
};

struct Held {
  std::string name;
  std::unique_ptr<Case> running;
  std::size_t turn = 0;
};

bool any_wrong = false;

Backend BackendOf(int threads) {
  static PoolExecutor one(1);
  static PoolExecutor two(2);
  return {Device::kCpu, nullptr, threads == 1 ? &one : &two};
}

// Of the first run of each benchmark in this process.
const Quality& CheckedQuality(const Entry& entry, Case& running, const Backend& backend) {
  static std::map<std::string, Quality, std::less<>> all;
  const auto found = all.find(entry.name);
  if (found != all.end()) return found->second;
  const Quality quality = running.Check(backend);
  any_wrong |= quality.wrong > 0;
  return all[entry.name] = quality;
}

// The cases that were used last stay, with their memory, for the next repetition: an operation and
// its ceilings, which take turns.
Held& CaseOf(const Entry& entry) {
  constexpr std::size_t kHeld = 12;
  static std::list<Held> all;
  const auto found = std::ranges::find(all, entry.name, &Held::name);
  if (found != all.end()) {
    all.splice(all.begin(), all, found);
    return all.front();
  }
  if (all.size() == kHeld) all.pop_back();
  all.push_front({entry.name, entry.operation->make(entry.data, entry.n)});
  return all.front();
}

void Run(benchmark::State& state, const Entry& entry) {
  kernels::ForceSimdLevel(entry.simd);
  const Backend backend = BackendOf(entry.threads);
  Held& held = CaseOf(entry);
  const Quality& quality = CheckedQuality(entry, *held.running, backend);
  while (held.turn < kTurns) held.running->Run(backend, held.turn++);  // warm-up
  for (auto iteration : state) {
    (void)iteration;
    held.running->Run(backend, held.turn++);
  }
  const auto bytes = static_cast<std::int64_t>(entry.n * sizeof(float));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
  state.counters["wrong"] = static_cast<double>(quality.wrong);
  if (quality.output_bytes > 0)
    state.counters["ratio"] =
        static_cast<double>(bytes) / static_cast<double>(quality.output_bytes);
  if (!std::isnan(quality.rel_error)) state.counters["rel_error"] = quality.rel_error;
}

const Operations& AllOperations() {
  static const Operations operations = [] {
    Operations all;
    AddConvert(all);
    AddFloat8(all);
    AddSign(all);
    AddQuantize(all);
    AddSelect(all);
    AddLowRank(all);
    AddElementwise(all);
    AddCeilings(all);
    return all;
  }();
  return operations;
}

void AddEntries(const Operation& operation, const NamedData& data, std::vector<Entry>& all) {
  for (const std::size_t n : kSizes) {
    for (const int threads : {1, 2}) {
      for (const std::string_view simd : kernels::SimdLevels()) {
        const std::string name = operation.name +
                                 (operation.has_data ? "/data:" + std::string(data.name) : "") +
                                 "/n:" + std::to_string(n) + "/threads:" + std::to_string(threads) +
                                 "/simd:" + std::string(simd);
        all.push_back({name, &operation, data.data, n, threads, simd});
      }
    }
  }
}

std::vector<Entry> AllEntries() {
  std::vector<Entry> all;
  for (const Operation& operation : AllOperations())
    for (const NamedData& data : kAllData)
      if (operation.has_data || data.data == Data::kNormal) AddEntries(operation, data, all);
  return all;
}

void Register(const Entry& entry) {
  benchmark::RegisterBenchmark(entry.name.c_str(), Run, entry)->UseRealTime();
}

// False where a name is unknown.
bool RunLine(const std::vector<Entry>& entries, const std::string& names) {
  benchmark::ClearRegisteredBenchmarks();
  std::istringstream words(names);
  for (std::string name; words >> name;) {
    const auto found = std::ranges::find(entries, name, &Entry::name);
    if (found == entries.end()) {
      std::cerr << "no benchmark '" << name << "'\n";
      return false;
    }
    Register(*found);
  }
  benchmark::JSONReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  std::cout << "end" << std::endl;
  return true;
}

// The exit status.
int RunFromStdin(const std::vector<Entry>& entries) {
  std::cout << "{\"simd\": \"" << kernels::SimdLevel() << "\"}" << std::endl;
  for (std::string names; std::getline(std::cin, names);)
    if (!RunLine(entries, names)) return 2;
  return any_wrong ? 1 : 0;
}

// Normal data, three sizes, one thread.
std::string SensibleFilter() {
  return "^[^/]*(/[a-z]*:[0-9a-z_.]*)?(/data:normal)?/n:(1024|262144|24993792)/threads:1/simd:" +
         std::string(kernels::SimdLevel()) + "/";
}

// Takes `flag` out of the arguments; false where it is not there.
bool TakeFlag(std::string_view flag, int& argc, char** argv) {
  char** const end = std::remove(argv, argv + argc, flag);
  const bool taken = end != argv + argc;
  argc = static_cast<int>(end - argv);
  return taken;
}

int Main(int argc, char** argv) {
  const bool from_stdin = TakeFlag("--names_from_stdin", argc, argv);
  const bool filtered = std::any_of(argv, argv + argc, [](std::string_view argument) {
    return argument.starts_with("--benchmark_filter");
  });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::vector<Entry> entries = AllEntries();
  if (from_stdin) return RunFromStdin(entries);
  std::ranges::for_each(entries, Register);
  benchmark::RunSpecifiedBenchmarks(filtered ? benchmark::GetBenchmarkFilter() : SensibleFilter());
  benchmark::Shutdown();
  return any_wrong ? 1 : 0;
}

}  // namespace
}  // namespace slimgrad::benchmarks

int main(int argc, char** argv) { return slimgrad::benchmarks::Main(argc, argv); }
