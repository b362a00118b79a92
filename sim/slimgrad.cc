// The command. Exit status: 0 done, 1 a run that failed (a damaged trace, a diverged spec), 2 bad
// usage.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/executor.h"
#include "core/version.h"
#include "sim/inspect.h"
#include "sim/list.h"
#include "sim/progress.h"
#include "sim/replay.h"

namespace slimgrad::sim {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kMostThreads = 1024;
constexpr int kLeastColumns = 100;  // for the tables; more where the terminal has them

int Fail(const Status& status) {
  std::fprintf(stderr, "slimgrad: %s\n", status.message().c_str());
  return status.code() == Code::kInvalidArgument ? kBadUsage : kFailed;
}

// The exit status: a failure when standard output could not be written whole (a full disk, a closed
// pipe).
int Print(const std::string& text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return written ? 0 : Fail(IoError("standard output: not everything could be written"));
}

std::uint64_t NowNs() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

// CLI11 alone takes "-1" for an unsigned number, "010" for 8, and clamps what does not fit.
template <class T>
CLI::Validator WholeNumber(T least, T most = std::numeric_limits<T>::max()) {
  return {[least, most](std::string& text) -> std::string {
            T value = {};
            const char* const end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            const std::string found = std::exchange(text, std::to_string(value));
            if (error == std::errc() && stopped == end && value >= least && value <= most)
              return "";
            return "expected a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most) + ", found '" + found + "'";
          },
          ""};
}

// As "$FOLDER" is where the variable was not set.
CLI::Validator NotEmpty() {
  return {[](const std::string& text) -> std::string {
            return text.empty() ? "expected a name, found an empty one" : "";
          },
          ""};
}

struct ReplayCommand {
  std::string trace, compressors, out;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  bool open = false, closed = false;

  void AddTo(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "replay", "Replay recorded gradients through compressors and compare them.");
    command->add_option("--trace", trace, "Folder of the gradient trace")
        ->required()
        ->check(NotEmpty())
        ->type_name("DIR");
    command
        ->add_option("--compressors", compressors,
                     "Specs with ';' between them; none and bf16 always come first")
        ->required()
        ->type_name("'A; B; ...'");
    command
        ->add_option("--out", out,
                     "Also write report.html, report.json, report.csv and timings.json there")
        ->check(NotEmpty())
        ->type_name("DIR");
    command->add_option("--steps", steps, "Only the first N steps of the trace")
        ->transform(WholeNumber(std::int64_t{1}))
        ->type_name("N");
    command->add_option("--seed", seed, "Of the compressors' randomness, 0 by default")
        ->transform(WholeNumber(std::uint64_t{0}))
        ->type_name("N");
    command
        ->add_option("--threads", threads,
                     "That the kernels run on, all processors by default; results are the same")
        ->transform(WholeNumber(1, kMostThreads))
        ->type_name("N");
    command->add_flag("--open-loop", open, "The recorded gradients only");
    command->add_flag(
        "--closed-loop", closed,
        "New gradients at the compressed weights only; with both flags, or none, both loops");
    command->footer(
        "Examples:\n"
        "  slimgrad replay --trace traces/digits_mlp --compressors "
        "'error_feedback(top_k(ratio=0.01))'\n"
        "  slimgrad replay --trace traces/digits_mlp --out report \\\n"
        "      --compressors 'int8; one_bit; error_feedback(one_bit); power_sgd(rank=2)'\n"
        "  slimgrad list                          # the methods and their parameters");
  }

  int Run() const {
    const auto specs = ParseReplaySpecs(compressors);
    if (!specs.ok()) return Fail(specs.status());
    const auto opened = Trace::Open(trace);
    if (!opened.ok()) return Fail(opened.status());
    Progress progress(stderr);
    PoolExecutor executor(threads);
    if (executor.concurrency() < threads)
      return Fail(Unsupported("--threads: expected that the system starts " +
                              std::to_string(threads) + ", found that it starts only " +
                              std::to_string(executor.concurrency())));
    ReplayOptions options;
    options.backend.executor = &executor;
    if (steps > 0) options.steps = steps;
    options.seed = seed;
    options.open_loop = open || !closed;
    options.closed_loop = closed || !open;
    options.require_closed_loop = closed;
    options.clock_ns = NowNs;
    options.progress = [&](std::string_view label, std::int64_t done, std::int64_t total) {
      progress.Update(label, done, total);
    };
    const auto result = Replay(*opened, *specs, options);
    progress.Clear();
    if (!result.ok()) return Fail(result.status());
    const Status written =
        out.empty() ? Status() : WriteReport(out, result->report, &result->timings);
    // What a run has found is shown even where it could not be kept.
    const int width = std::max(kLeastColumns, TerminalWidth(stdout, kLeastColumns));
    const int printed = Print(ToText(result->report, &result->timings, width));
    if (!written.ok()) return Fail(written);
    return result->report.HasFailures() ? kFailed : printed;
  }
};

struct InspectCommand {
  std::string path;

  void AddTo(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "inspect", "Describe a trace, a file of payload frames or a state file.");
    command->add_option("path", path, "File or folder")
        ->required()
        ->check(NotEmpty())
        ->type_name("FILE|DIR");
    command->footer("Example:\n  slimgrad inspect traces/digits_mlp");
  }

  int Run() const {
    const auto text = Inspect(path);
    return text.ok() ? Print(*text) : Fail(text.status());
  }
};

int Main(int argc, char** argv) {
  CLI::App app("slimgrad: what gradient compression sends, loses and costs.", "slimgrad");
  app.require_subcommand(1);
  app.set_version_flag("--version", "slimgrad " + std::string(kVersion));
  app.footer("Each command has its own --help with examples.");
  ReplayCommand replay;
  InspectCommand inspect;
  app.add_subcommand("list", "List every compressor, wrapper and recoder with its parameters.");
  replay.AddTo(app);
  inspect.AddTo(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> unknown = app.remaining();
    if (unknown.empty()) {
      app.exit(error);
      return kBadUsage;
    }
    return Fail(InvalidArgument("command: expected list, replay or inspect, found '" + unknown[0] +
                                "'; --help says more"));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  if (app.got_subcommand("replay")) return replay.Run();
  if (app.got_subcommand("inspect")) return inspect.Run();
  return Print(ListText());
}

}  // namespace
}  // namespace slimgrad::sim

int main(int argc, char** argv) try {
  return slimgrad::sim::Main(argc, argv);
} catch (const std::bad_alloc&) {
  std::fputs("slimgrad: not enough memory\n", stderr);
  return slimgrad::sim::kFailed;
}
