// 8-bit integers, symmetric, one scale (the largest magnitude) a block. Stochastic rounding makes
// it unbiased.
#include <algorithm>

#include "compressors/api/registry.h"
#include "kernels/blocks.h"
#include "kernels/elementwise.h"
#include "kernels/quantize.h"

namespace slimgrad {
namespace {

struct Int8 {
  std::size_t block;
  kernels::Rounding rounding;

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    const std::size_t n = tensor.numel();
    const std::size_t bound =
        SectionBytesOf<float>(kernels::BlockCount(n, block)) + SectionBytesOf<std::int8_t>(n);
    const bool stochastic = rounding == kernels::Rounding::kStochastic;
    Traits traits = {.unbiased = stochastic, .fixed_size = true};
    // Nearest: every error is at most half a step, absmax / 254, and the block's norm at least
    // absmax. The slack covers the rounding of the scale itself.
    const double worst = static_cast<double>(std::min(block, n)) / (254.0 * 254.0) * 1.001;
    if (!stochastic && worst < 1) traits.delta = 1 - worst;
    return Plan{.rounds = {Round::Gather(bound)}, .traits = traits};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const Out scales = payload.Add<float>(Tag::kScale, kernels::BlockCount(x.size(), block));
    const auto codes = payload.Add<std::int8_t>(Tag::kValue, x.size());
    kernels::Int8Encode(context.backend, x, block, rounding, context.PrivateKey("int8.rounding"),
                        codes, scales);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(
        const In scales, payload.Get<float>(Tag::kScale, kernels::BlockCount(y.size(), block)));
    SLIMGRAD_ASSIGN_OR_RETURN(const auto codes, payload.Get<std::int8_t>(Tag::kValue, y.size()));
    kernels::Int8DecodeAdd(context.backend, codes, scales, block, weight, y);
    return {};
  }
};

SLIMGRAD_METHOD(int8) {
  return {
      .summary = "8-bit integers, one scale a block",
      .reference = "Dettmers 2016; Alistarh et al. 2017 for stochastic rounding",
      .parameters = {Integer("block").Default(256).AtLeast(1).Doc("elements that share a scale"),
                     Choice("rounding", {"nearest", "stochastic"})
                         .Default("nearest")
                         .Doc("stochastic is unbiased, nearest has half the error")},
      .example = "int8(block=256,rounding=stochastic)",
      .make = [](const Arguments& a) -> Result<Compressor> {
        const bool stochastic = a.Choice("rounding") == "stochastic";
        return Compressor(Int8{a.Size("block"), stochastic ? kernels::Rounding::kStochastic
                                                           : kernels::Rounding::kNearest});
      }};
}

}  // namespace
}  // namespace slimgrad
