// What fp16 and bf16 share: 16-bit values, averaged in fp32 and rounded once.
#pragma once

#include "compressors/api/registry.h"
#include "kernels/convert.h"

namespace slimgrad {

// The kernels of a type.
struct F16Kernels {
  using Type = half_bits;
  static constexpr auto* Encode = kernels::F32ToF16;
  static constexpr auto* EncodeFeedback = kernels::F32ToF16Feedback;
  static constexpr auto* DecodeAdd = kernels::F16DecodeAdd;
  static constexpr auto* Decode = kernels::F16Decode;
};
struct BF16Kernels {
  using Type = bfloat16_bits;
  static constexpr auto* Encode = kernels::F32ToBF16;
  static constexpr auto* EncodeFeedback = kernels::F32ToBF16Feedback;
  static constexpr auto* DecodeAdd = kernels::BF16DecodeAdd;
  static constexpr auto* Decode = kernels::BF16Decode;
};

template <class Kernels>
struct HalfCodec {
  using T = typename Kernels::Type;

  kernels::Overflow overflow;

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    return Plan{.rounds = {Round::Combine(kernels::CombineOp::kMean, kDTypeOf<T>, tensor.numel())},
                .traits = {.fixed_size = true}};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const std::span<T> values = payload.Add<T>(Tag::kValue, x.size());
    Kernels::Encode(context.backend, x, values, overflow, &context.counters->saturated);
  }
  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    const std::span<T> values = payload.Add<T>(Tag::kValue, x.size());
    Kernels::EncodeFeedback(context.backend, x, residual, values, overflow,
                            &context.counters->saturated);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const T> values,
                              payload.Get<T>(Tag::kValue, y.size()));
    Kernels::DecodeAdd(context.backend, values, weight, y);
    return {};
  }
  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const T> values,
                              payload.Get<T>(Tag::kValue, y.size()));
    Kernels::Decode(context.backend, values, weight, y);
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
