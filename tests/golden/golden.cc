#include "tests/golden/golden.h"

#include <algorithm>
#include <array>
#include <regex>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"
#include "core/random.h"

namespace slimgrad {
namespace {

// Specs chosen to show more than a method's example does on the small tensor.
const std::array kChosen = {
    Golden{"none", "none"},
    Golden{"fp16", "fp16"},
    Golden{"bf16", "bf16"},
    Golden{"int8_nearest", "int8(block=16)"},
    Golden{"int8_stochastic", "int8(block=16,rounding=stochastic)"},
    Golden{"top_k", "top_k(k=5)"},
    Golden{"one_bit", "one_bit(block=16)"},
    Golden{"scaled_sign", "scaled_sign(block=16)"},
    Golden{"power_sgd", "power_sgd(rank=1)"},
    Golden{"top_k_delta_index", "top_k(k=5)|delta_index"},
    Golden{"top_k_fp16_values", "top_k(k=5)|fp16_values"},
    Golden{"top_k_delta_index_fp16_values", "top_k(k=5)|delta_index|fp16_values"},
    Golden{"error_feedback_top_k", "error_feedback(top_k(k=5))"},
    Golden{"error_feedback_power_sgd", "error_feedback(power_sgd(rank=1))"},
    Golden{"small_tensors", "small_tensors(one_bit,below=36,use=fp16)"},
};

// Fixed for good, as are the gradient and the seed: the files were made with them.
const TensorSpec kTensor = {"weight", {5, 7}};
constexpr std::uint64_t kSeed = 1;

// Multiples of 1/8 between -4 and 4, no two neighbours alike, both signs of zero among them.
std::vector<float> Gradient() {
  std::vector<float> gradient(kTensor.numel());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = static_cast<float>(static_cast<int>(i * 37 % 65) - 32) / 8;
  gradient[17] = -0.0F;
  return gradient;
}

// 16 bytes a line behind their offset.
std::string HexText(Bytes bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    text += fmt::format("{:04x} ", at);
    for (const std::byte byte : bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at)))
      text += fmt::format(" {:02x}", static_cast<unsigned>(byte));
    text += '\n';
  }
  return text;
}

// One rank whose outgoing bytes are written down.
class RecordingGroup final : public Group {
 public:
  std::string text;

  int size() const override { return 1; }
  std::span<const int> local_ranks() const override { return inner_.local_ranks(); }
  Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                           TrafficRow& traffic) override {
    text += fmt::format("gather, {} bytes\n{}", mine[0].size(), HexText(mine[0]));
    return inner_.AllGather(mine, traffic);
  }
  Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                    std::span<std::byte> result, TrafficRow& traffic) override {
    constexpr std::array kOps = {"mean", "sum", "max"};
    text += fmt::format("{} of {}, {} bytes\n{}", kOps.at(static_cast<std::size_t>(op)),
                        NameOf(dtype), mine[0].size(), HexText(mine[0]));
    return inner_.AllCombine(op, dtype, mine, result, traffic);
  }

 private:
  LockStepGroup inner_{1};
};

Status RunStep(Exchange& exchange, In gradient) {
  std::vector<float> average(gradient.size());
  const ConstView in(gradient);
  const View out{Out(average)};
  const std::span<const ConstView> gradients(&in, 1);
  const std::span<const View> averages(&out, 1);
  return exchange.Step({&gradients, 1}, {&averages, 1}, {});
}

// Matrices, so that every method compresses them; the last has more than one block of each method.
const std::vector<std::vector<std::int64_t>> kShapes = {
    {1}, {10, 10}, {32, 64}, {100, 101}, {256, 1024}};

std::vector<float> LargeGradient(std::size_t n) {
  const RandomKey key = MakeRandomKey(kSeed, 0, "golden.sizes", kTensor.name, 0);
  std::vector<float> gradient(n);
  for (std::size_t i = 0; i < n; ++i) gradient[i] = Uniform(key, i) - 0.5F;
  return gradient;
}

Result<std::uint64_t> PayloadBytes(std::string_view spec, std::vector<std::int64_t> shape) {
  LockStepGroup group(1);
  SLIMGRAD_ASSIGN_OR_RETURN(Compressor compressor, MakeCompressor(spec));
  const TensorSpec tensor = {kTensor.name, std::move(shape)};
  SLIMGRAD_ASSIGN_OR_RETURN(const auto exchange, Exchange::Create(group, std::move(compressor),
                                                                  {tensor}, {.seed = kSeed}));
  SLIMGRAD_RETURN_IF_ERROR(RunStep(*exchange, LargeGradient(tensor.numel())));
  return exchange->report().payload_bytes;
}

}  // namespace

std::vector<Golden> Goldens() {
  std::vector<Golden> goldens(kChosen.begin(), kChosen.end());
  for (const Method* method : Methods()) {
    const auto uses = [&](const Golden& golden) {
      return std::regex_search(golden.spec, std::regex("\\b" + method->name + "\\b"));
    };
    if (std::none_of(kChosen.begin(), kChosen.end(), uses))
      goldens.push_back({method->name, method->example});
  }
  return goldens;
}

Result<std::string> GoldenText(std::string_view spec) {
  RecordingGroup group;
  SLIMGRAD_ASSIGN_OR_RETURN(Compressor compressor, MakeCompressor(spec));
  const std::vector<float> gradient = Gradient();
  std::string text = fmt::format("spec {}\nspec hash {:016x}\ntensor {} {}, seed {}, rank 0 of 1\n",
                                 compressor.spec(), compressor.spec_hash(), kTensor.name,
                                 ShapeText(kTensor.shape), kSeed);
  text += fmt::format("gradient {}\n", fmt::join(gradient, " "));
  SLIMGRAD_ASSIGN_OR_RETURN(const auto exchange,
                            Exchange::Create(group, std::move(compressor), {kTensor},
                                             {.seed = kSeed, .nonfinite = NonFinite::kTrusted}));
  for (int step = 0; step < 2; ++step) {
    group.text.clear();  // at first, what was compared at set-up
    SLIMGRAD_RETURN_IF_ERROR(RunStep(*exchange, gradient));
    text += fmt::format("\nstep {}\n{}", step, group.text);
  }
  return text;
}

Result<std::string> SizesText() {
  std::vector<std::string> specs = {"error_feedback(power_sgd(rank=2))",
                                    "top_k(ratio=0.01)|delta_index|fp16_values",
                                    "int8(block=256,rounding=nearest)"};
  for (const Method* method : Methods()) specs.push_back(method->example);
  std::string text = "spec,shape,elements,payload_bytes\n";
  for (const std::string& spec : specs)
    for (const std::vector<std::int64_t>& shape : kShapes) {
      SLIMGRAD_ASSIGN_OR_RETURN(const std::uint64_t bytes, PayloadBytes(spec, shape));
      text += fmt::format("\"{}\",{},{},{}\n", spec, fmt::join(shape, "x"),
                          TensorSpec{"", shape}.numel(), bytes);
    }
  return text;
}

}  // namespace slimgrad
