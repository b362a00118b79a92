#include "benchmarks/data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <thread>
#include <utility>

#include "core/executor.h"
#include "core/random.h"
#include "core/tensor.h"
#include "sim/trace.h"

namespace slimgrad::benchmarks {
namespace {

constexpr double kScale = 1e-3;
constexpr char kTrace[] = "traces/digits_mlp";

// In (0, 1), on a grid so fine that no two of 64 million draws need be equal.
double Draw(const RandomKey& key, std::uint64_t i) {
  return double{Uniform(key, 2 * i)} + (double{Uniform(key, 2 * i + 1)} + 0x1p-25) * 0x1p-24;
}

// Box and Muller.
double Normal(const RandomKey& key, std::uint64_t i) {
  const double radius = std::sqrt(-2 * std::log(Draw(key, 2 * i)));
  return radius * std::cos(2 * std::numbers::pi * Draw(key, 2 * i + 1));
}

double NormalOrZero(const RandomKey& key, std::uint64_t i, float share) {
  return Uniform(MakeRandomKey(key.bits, 0, "benchmark.kept", "", kShared), i) < share
             ? Normal(key, i)
             : 0.0;
}

double Value(Data data, const RandomKey& key, std::uint64_t i, std::size_t n) {
  switch (data) {
    case Data::kNormal: return Normal(key, i);
    case Data::kLaplace: {
      const double u = Draw(key, i) - 0.5;
      return std::copysign(std::log(1 - 2 * std::fabs(u)), u);
    }
    case Data::kStudentT: {
      const double u = Draw(key, i);
      return (2 * u - 1) / std::sqrt(2 * u * (1 - u));
    }
    case Data::kSparse: return NormalOrZero(key, i, 0.01F);
    case Data::kSparser: return NormalOrZero(key, i, 0.0005F);
    case Data::kConstant: return 1;
    case Data::kTwoValues: return Uniform(key, i) < 1.0F / 3 ? 2 : -1;
    case Data::kSorted: return static_cast<double>(i) / static_cast<double>(n) - 1.0 / 3;
    case Data::kZeros:
    case Data::kRecorded: break;
  }
  return 0;
}

void Stop(const Status& status) {
  std::fprintf(stderr, "%s: %s (run in the root of the sources)\n", kTrace,
               status.message().c_str());
  std::exit(2);
}

// All gradients of the trace, one after the other.
const std::vector<float>& Recorded() {
  static const std::vector<float> values = [] {
    std::vector<float> all;
    const Result<sim::Trace> trace = sim::Trace::Open(kTrace);
    if (!trace.ok()) Stop(trace.status());
    for (std::int64_t step = 0; step < trace->schema().steps; ++step) {
      for (std::int64_t rank = 0; rank < trace->schema().world_size; ++rank) {
        const auto gradients = trace->Gradients(step, rank);
        if (!gradients.ok()) Stop(gradients.status());
        for (const ConstView& tensor : gradients->tensors()) {
          const auto part = tensor.As<float>();
          all.insert(all.end(), part.begin(), part.end());
        }
      }
    }
    return all;
  }();
  return values;
}

void FillOne(Data data, std::uint64_t turn, Executor& executor, std::span<float> to) {
  if (data == Data::kRecorded) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = Recorded()[i % Recorded().size()];
    return;
  }
  constexpr std::size_t kTask = 1 << 15;
  const RandomKey key = MakeRandomKey(1, turn, "benchmark", "gradient", kShared);
  executor.ParallelFor((to.size() + kTask - 1) / kTask, [&](std::size_t task) {
    const std::size_t end = std::min(to.size(), (task + 1) * kTask);
    for (std::size_t i = task * kTask; i < end; ++i)
      to[i] = static_cast<float>(kScale * Value(data, key, i, to.size()));
  });
}

}  // namespace

Inputs InputsOf(Data data, std::size_t n) {
  static std::pair<Data, std::size_t> kept_key;
  static Inputs kept;
  if (kept && kept_key == std::pair(data, n)) return kept;
  kept.reset();
  const auto inputs = std::make_shared<const Rotation<float>>(n);
  PoolExecutor executor(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  for (std::size_t turn = 0; turn < kTurns; ++turn) FillOne(data, turn, executor, (*inputs)[turn]);
  kept_key = {data, n};
  return kept = inputs;
}

}  // namespace slimgrad::benchmarks
