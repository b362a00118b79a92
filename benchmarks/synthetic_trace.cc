// Writes a gradient trace of 25 million parameters without a model: what a replay takes for one
// step, whatever the gradients mean.
//
//   bazel run -c opt //benchmarks:synthetic_trace -- /tmp/trace [WORKERS [STEPS]]
//
// 8 workers and 10 steps by default: 8 GB. Values are normal: runs of 4096 out of a million draws.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/values.h"
#include "core/buffer.h"
#include "core/random.h"
#include "sim/trace_writer.h"

namespace slimgrad::sim {
namespace {

constexpr std::size_t kDraws = std::size_t{1} << 20;
constexpr std::size_t kRun = 4096;

std::vector<TensorSpec> Layers() {
  std::vector<TensorSpec> tensors;
  for (int layer = 0; layer < 5; ++layer)
    tensors.push_back({"layer" + std::to_string(layer) + ".weight", {2048, 2048}});
  tensors.push_back({"head.weight", {1000, 4000}});
  tensors.push_back({"head.bias", {28480}});
  return tensors;
}

std::vector<float> NormalDraws() {
  const RandomKey key = MakeRandomKey(1, 0, "synthetic_trace", "draws", kShared);
  std::vector<float> draws(kDraws);
  for (std::size_t i = 0; i < kDraws; ++i)
    draws[i] = static_cast<float>(
        1e-3 * benchmarks::Normal(1.0 - Uniform(key, 2 * i), Uniform(key, 2 * i + 1)));
  return draws;
}

void Draw(const std::vector<float>& draws, const RandomKey& key, Out gradient) {
  for (std::size_t at = 0; at < gradient.size(); at += kRun) {
    const std::size_t count = std::min(kRun, gradient.size() - at);
    const std::size_t from = Philox(key, at / kRun)[0] % (kDraws - kRun);
    std::memcpy(gradient.data() + at, draws.data() + from, count * sizeof(float));
  }
}

Status Write(const char* folder, std::int64_t workers, std::int64_t steps) {
  TraceSchema schema;
  schema.name = "synthetic";
  schema.world_size = workers;
  schema.steps = steps;
  schema.tensors = Layers();
  schema.learning_rates.assign(static_cast<std::size_t>(steps), 0.1);
  std::vector<Buffer<float>> gradients;
  std::vector<ConstView> views;
  for (const TensorSpec& tensor : schema.tensors) {
    gradients.emplace_back(tensor.numel());
    views.emplace_back(In(gradients.back().span()));
  }
  const std::vector<float> draws = NormalDraws();
  SLIMGRAD_ASSIGN_OR_RETURN(TraceWriter writer, TraceWriter::Create(folder, schema));
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t rank = 0; rank < workers; ++rank) {
      for (std::size_t t = 0; t < gradients.size(); ++t)
        Draw(draws,
             MakeRandomKey(1, static_cast<std::uint64_t>(step), "synthetic_trace",
                           schema.tensors[t].name, static_cast<std::uint64_t>(rank)),
             gradients[t].span());
      SLIMGRAD_RETURN_IF_ERROR(writer.Gradients(step, rank, views));
    }
  }
  return writer.Finish();
}

}  // namespace
}  // namespace slimgrad::sim

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fputs("usage: synthetic_trace FOLDER [WORKERS [STEPS]]\n", stderr);
    return 2;
  }
  const auto number = [&](int i, std::int64_t otherwise) {
    return argc > i ? std::strtoll(argv[i], nullptr, 10) : otherwise;
  };
  const slimgrad::Status status = slimgrad::sim::Write(argv[1], number(2, 8), number(3, 10));
  if (status.ok()) return 0;
  std::fprintf(stderr, "synthetic_trace: %s\n", status.message().c_str());
  return 1;
}
