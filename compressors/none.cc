// Dense fp32: the baseline that everything is measured against.
#include "compressors/api/registry.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"

namespace slimgrad {
namespace {

struct None {
  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    return Plan{.rounds = {Round::Combine(kernels::CombineOp::kMean, DType::kF32, tensor.numel())},
                .traits = {.unbiased = true, .delta = 1.0, .fixed_size = true, .exact = true}};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    kernels::Copy(context.backend, x, payload.Add<float>(Tag::kValue, x.size()));
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const In values, payload.Get<float>(Tag::kValue, y.size()));
    kernels::AddScaled(context.backend, values, weight, y);
    return {};
  }
};

SLIMGRAD_METHOD(none) {
  return {.summary = "dense fp32, the baseline",
          .reference = "all-reduce without compression",
          .example = "none",
          .make = [](const Arguments&) -> Result<Compressor> { return Compressor(None{}); }};
}

}  // namespace
}  // namespace slimgrad
