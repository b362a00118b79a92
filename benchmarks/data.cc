#include "benchmarks/data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <thread>

#include "benchmarks/values.h"
#include "core/executor.h"
#include "core/random.h"
#include "core/tensor.h"
#include "sim/trace.h"

namespace slimgrad::benchmarks {
namespace {

constexpr double kScale = 1e-3;
constexpr char kTrace[] = "traces/digits_mlp";

// Two numbers in (0, 1), so fine that no two of 64 million need be equal, and one more.
struct Draws {
  Draws(const RandomKey& key, std::uint64_t i) {
    const auto words = Philox(key, i);
    u = (static_cast<double>(words[0]) + 0.5) * 0x1p-32;
    v = (static_cast<double>(words[1]) + 0.5) * 0x1p-32;
    kept = static_cast<double>(words[2]) * 0x1p-32;
  }
  double u, v, kept;
};

double Value(Data data, const Draws& draws, double position) {
  switch (data) {
    case Data::kNormal: return Normal(draws.u, draws.v);
    case Data::kLaplace: {
      const double u = draws.u - 0.5;
      return std::copysign(std::log(1 - 2 * std::fabs(u)), u);
    }
    case Data::kStudentT: {
      const double u = draws.u;
      return (2 * u - 1) / std::sqrt(2 * u * (1 - u));
    }
    case Data::kSparse: return draws.kept < 0.01 ? Normal(draws.u, draws.v) : 0;
    case Data::kSparser: return draws.kept < 0.0005 ? Normal(draws.u, draws.v) : 0;
    case Data::kConstant: return 1;
    case Data::kTwoValues: return draws.u < 1.0 / 3 ? 2 : -1;
    case Data::kSorted: return position - 1.0 / 3;
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
  const std::size_t n = to.size();
  const RandomKey key = MakeRandomKey(1, turn, "benchmark", "gradient", kShared);
  executor.ParallelFor((n + kTask - 1) / kTask, [&](std::size_t task) {
    const std::size_t end = std::min(n, (task + 1) * kTask);
    for (std::size_t i = task * kTask; i < end; ++i)
      to[i] = static_cast<float>(
          kScale * Value(data, Draws(key, i), static_cast<double>(i) / static_cast<double>(n)));
  });
}

}  // namespace

Inputs InputsOf(Data data, std::size_t n) {
  struct Kept {
    Data data;
    std::size_t n;
    Inputs inputs;
  };
  static std::list<Kept> kept;  // the last one first
  const auto found =
      std::ranges::find_if(kept, [&](const Kept& one) { return one.data == data && one.n == n; });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
    return kept.front().inputs;
  }
  if (kept.size() == 2) kept.pop_back();
  const auto inputs = std::make_shared<const Rotation<float>>(n);
  PoolExecutor executor(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  for (std::size_t turn = 0; turn < kTurns; ++turn) FillOne(data, turn, executor, (*inputs)[turn]);
  kept.push_front({data, n, inputs});
  return inputs;
}

}  // namespace slimgrad::benchmarks
