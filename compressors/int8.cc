// 8-bit integers, symmetric, one scale (the largest magnitude) a block. Stochastic rounding makes
// it unbiased.
#include <algorithm>
#include <utility>

#include "compressors/api/registry.h"
#include "kernels/blocks.h"
#include "kernels/quantize.h"

namespace slimgrad {
namespace {

class Int8 {
 public:
  Int8(std::size_t block, kernels::Rounding rounding) : block_(block), rounding_(rounding) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    const std::size_t n = tensor.numel();
    const std::size_t bound =
        SectionBytesOf<float>(kernels::BlockCount(n, block_)) + SectionBytesOf<std::int8_t>(n);
    const bool stochastic = rounding_ == kernels::Rounding::kStochastic;
    Traits traits = {.unbiased = stochastic, .fixed_size = true};
    // Nearest: every error is at most half a step, absmax / 254, and the block's norm at least
    // absmax. The slack covers the rounding of the scale itself.
    const double worst = static_cast<double>(std::min(block_, n)) / (254.0 * 254.0) * 1.001;
    if (!stochastic && worst < 1) traits.delta = 1 - worst;
    return Plan{.rounds = {Round::Gather(bound)}, .traits = traits};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const auto [codes, scales] = AddSections(x.size(), payload);
    kernels::Int8Encode(context.backend, x, block_, rounding_, KeyOf(context), codes, scales);
  }
  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    const auto [codes, scales] = AddSections(x.size(), payload);
    kernels::Int8EncodeFeedback(context.backend, x, residual, block_, rounding_, KeyOf(context),
                                codes, scales);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::Int8DecodeAdd, payload, context, weight, y);
  }
  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::Int8Decode, payload, context, weight, y);
  }

 private:
  static RandomKey KeyOf(const Context& context) { return context.PrivateKey("int8.rounding"); }

  std::pair<std::span<std::int8_t>, Out> AddSections(std::size_t n, Payload& payload) const {
    const Out scales = payload.Add<float>(Tag::kScale, kernels::BlockCount(n, block_));
    return {payload.Add<std::int8_t>(Tag::kValue, n), scales};
  }
  template <class Kernel>
  Status DecodeBy(Kernel kernel, const PayloadView& payload, const Context& context, float weight,
                  Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(
        const In scales, payload.Get<float>(Tag::kScale, kernels::BlockCount(y.size(), block_)));
    SLIMGRAD_ASSIGN_OR_RETURN(const auto codes, payload.Get<std::int8_t>(Tag::kValue, y.size()));
    kernel(context.backend, codes, scales, block_, weight, y);
    return {};
  }

  std::size_t block_;
  kernels::Rounding rounding_;
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
        return Compressor(Int8(a.Size("block"), stochastic ? kernels::Rounding::kStochastic
                                                           : kernels::Rounding::kNearest));
      }};
}

}  // namespace
}  // namespace slimgrad
