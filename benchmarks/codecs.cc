// Encode and decode of every registered method's example, one rank, on normal data.
//
//   bazel run -c opt //benchmarks:codecs -- --benchmark_filter='top_k.*n:262144'
//
// A step goes through the real exchange; Encode times its sends (payload and frame checksum),
// Decode its receives (frame check and average). Counters: bytes_per_second of the fp32 gradient,
// payload_ratio = its bytes / those sent, rel_error = |average - gradient| / |gradient| of the
// first step. Exit status 1 when a step fails or gives no average.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/values.h"
#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"
#include "core/executor.h"
#include "core/random.h"

namespace slimgrad {
namespace {

bool failed = false;

// Standard normal values, the same on every run.
std::vector<float> NormalValues(std::size_t n) {
  const RandomKey key = MakeRandomKey(1, 0, "benchmark", "gradient", kShared);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] =
        static_cast<float>(benchmarks::Normal(1.0 - Uniform(key, 2 * i), Uniform(key, 2 * i + 1)));
  return values;
}

// One rank with one square matrix of n elements.
struct Stand {
  Stand(std::size_t n, int threads) : executor(threads), gradient(NormalValues(n)), average(n) {}

  Status SetUp(const std::string& spec) {
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(gradient.size())));
    ExchangeOptions options;
    options.backend.executor = &executor;
    options.clock_ns = [] {
      return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                        std::chrono::nanoseconds(1));
    };
    SLIMGRAD_ASSIGN_OR_RETURN(Compressor compressor, MakeCompressor(spec));
    SLIMGRAD_ASSIGN_OR_RETURN(exchange, Exchange::Create(group, std::move(compressor),
                                                         {{"weight", {side, side}}}, options));
    return {};
  }

  Status Step() {
    const ConstView in{In(gradient)};
    const View out{Out(average)};
    const std::span<const ConstView> ins(&in, 1);
    const std::span<const View> outs(&out, 1);
    return exchange->Step({&ins, 1}, {&outs, 1}, {});
  }

  double RelativeError() const { return benchmarks::RelativeError(average, gradient); }

  // Empty, or what is wrong with the last step.
  std::string Problem() const {
    const double error = RelativeError();
    if (!std::isfinite(error)) return "the average is not finite";
    if (exchange->report().skipped) return "the step was skipped";
    if (exchange->report().payload_bytes == 0) return "nothing was sent";
    // Before there is a residual, an average is nearer to the gradient than zero is.
    const bool far = exchange->report().step == 0 && !(error < 1);
    return far ? "the average is not the gradient's" : "";
  }

  PoolExecutor executor;
  LockStepGroup group{1};
  std::vector<float> gradient, average;
  std::unique_ptr<Exchange> exchange;
};

void Run(benchmark::State& state, const std::string& spec, std::uint64_t StepReport::*nanoseconds) {
  Stand stand(static_cast<std::size_t>(state.range(0)), static_cast<int>(state.range(1)));
  Status status = stand.SetUp(spec);
  if (status.ok()) status = stand.Step();
  std::string problem = status.ok() ? stand.Problem() : status.message();
  const double first_error = stand.RelativeError();
  while (problem.empty() && state.KeepRunning()) {
    status = stand.Step();
    state.SetIterationTime(1e-9 * static_cast<double>(stand.exchange->report().*nanoseconds));
  }
  if (problem.empty()) problem = status.ok() ? stand.Problem() : status.message();
  if (!problem.empty()) {
    failed = true;
    return state.SkipWithError(problem.c_str());
  }
  const auto bytes = static_cast<std::int64_t>(stand.gradient.size() * sizeof(float));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
  state.counters["payload_ratio"] =
      static_cast<double>(bytes) / static_cast<double>(stand.exchange->report().payload_bytes);
  state.counters["rel_error"] = first_error;
}

void RegisterAll() {
  for (const Method* method : Methods())
    for (const auto part : {&StepReport::encode_ns, &StepReport::decode_ns})
      benchmark::RegisterBenchmark(
          ((part == &StepReport::encode_ns ? "Encode/" : "Decode/") + method->example).c_str(), Run,
          method->example, part)
          ->ArgNames({"n", "threads"})
          ->ArgsProduct({{1 << 10, 1 << 18, 1 << 22}, {1, 2}})
          ->UseManualTime();
}

}  // namespace
}  // namespace slimgrad

int main(int argc, char** argv) {
  slimgrad::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return slimgrad::failed ? 1 : 0;
}
