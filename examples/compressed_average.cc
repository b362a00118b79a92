// Averages the gradients of four ranks through a compressor, and says what that costs.
//
// usage: bazel run -c opt //:compressed_average -- 'error_feedback(top_k(ratio=0.1))'
#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"

namespace {

constexpr int kRanks = 4;
constexpr int kSteps = 100;
constexpr std::size_t kRows = 64, kColumns = 32;

// The same gradient on every step, so that error feedback can be seen to catch up.
std::vector<float> Gradient(int rank) {
  std::vector<float> gradient(kRows * kColumns);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = std::sin(0.1F * static_cast<float>(i) + static_cast<float>(rank));
  }
  return gradient;
}

slimgrad::Status Run(std::string_view spec) {
  SLIMGRAD_ASSIGN_OR_RETURN(auto compressor, slimgrad::MakeCompressor(spec));
  const std::vector<slimgrad::TensorSpec> tensors = {{"layer.weight", {kRows, kColumns}}};
  slimgrad::LockStepGroup group(kRanks);  // all ranks in this process, on this thread
  SLIMGRAD_ASSIGN_OR_RETURN(auto exchange, slimgrad::Exchange::Create(group, std::move(compressor),
                                                                      tensors, {.seed = 1}));

  std::vector<std::vector<float>> gradients;
  for (int rank = 0; rank < kRanks; ++rank) gradients.push_back(Gradient(rank));
  std::vector<float> average(kRows * kColumns);

  // A list of tensors a rank; the average, equal on all ranks, is wanted once.
  std::vector<slimgrad::ConstView> inputs(gradients.begin(), gradients.end());
  std::vector<std::span<const slimgrad::ConstView>> of_ranks;
  for (const auto& input : inputs) of_ranks.emplace_back(&input, 1);
  const slimgrad::View output{std::span(average)};
  const std::span<const slimgrad::View> of_first_rank(&output, 1);

  double sum = 0, exact = 0;
  for (int step = 0; step < kSteps; ++step) {
    SLIMGRAD_RETURN_IF_ERROR(exchange->Step(of_ranks, {&of_first_rank, 1}, {.learning_rate = 0.1}));
    sum += average[0];
    for (const auto& gradient : gradients) exact += gradient[0] / kRanks;
  }
  std::printf("%s\n", exchange->compressor().spec().c_str());
  std::printf(
      "frames: %.2f bits a parameter\n",
      8.0 * static_cast<double>(exchange->report().payload_bytes) / (kRanks * average.size()));
  std::printf("element 0, summed over %d steps: %.4f, uncompressed %.4f\n", kSteps, sum, exact);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const slimgrad::Status status = Run(argc > 1 ? argv[1] : "error_feedback(top_k(ratio=0.1))");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
