// What fp16 and bf16 share: 16-bit values, averaged in fp32 and rounded once.
#pragma once

#include "compressors/api/registry.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"

namespace slimgrad {

template <class T>  // half_bits or bfloat16_bits
struct HalfCodec {
  kernels::Overflow overflow;

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    return Plan{.rounds = {Round::Combine(kernels::CombineOp::kMean, kDTypeOf<T>, tensor.numel())},
                .traits = {.fixed_size = true}};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const std::span<T> values = payload.Add<T>(Tag::kValue, x.size());
    const View view(values.data(), values.size(), kDTypeOf<T>, context.backend.device);
    context.counters->saturated += kernels::Narrow(context.backend, x, view, overflow);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const T> values,
                              payload.Get<T>(Tag::kValue, y.size()));
    ScratchScope scope(*context.scratch);
    const Out wide = scope.Take<float>(y.size());
    kernels::Widen(context.backend,
                   {values.data(), values.size(), kDTypeOf<T>, context.backend.device}, wide);
    kernels::AddScaled(context.backend, wide, weight, y);
    return {};
  }
};

inline Parameter OverflowParameter() {
  return Choice("overflow", {"saturate", "inf"})
      .Default("saturate")
      .Doc(
          "what becomes of finite values beyond the largest one: the largest one, counted, or "
          "infinity");
}

inline kernels::Overflow OverflowOf(const Arguments& arguments) {
  return arguments.Choice("overflow") == "inf" ? kernels::Overflow::kInfinity
                                               : kernels::Overflow::kSaturate;
}

}  // namespace slimgrad
