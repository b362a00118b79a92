// Signs, scaled by the block's mean magnitude (Karimireddy et al. 2019, EF-signSGD). Wrap it in
// error_feedback.
#include <algorithm>
#include <utility>

#include "compressors/api/registry.h"
#include "kernels/blocks.h"
#include "kernels/sign.h"

namespace slimgrad {
namespace {

class ScaledSign {
 public:
  explicit ScaledSign(std::size_t elements) : block_(elements) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    const std::size_t n = tensor.numel();
    Traits traits = {.fixed_size = true};
    // delta = |x|_1^2 / (m |x|^2) for a block of m (section 4 of the paper), at least 1 / m.
    if (n > 0) traits.delta = 1.0 / static_cast<double>(std::min(block_, n)) * 0.999;
    return Plan{.rounds = {Round::Gather(SectionBytesOf<std::uint8_t>(kernels::BitBytes(n)) +
                                         SectionBytesOf<float>(kernels::BlockCount(n, block_)))},
                .traits = traits};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const auto [bits, scales] = AddSections(x.size(), payload);
    kernels::ScaledSignEncode(context.backend, x, block_, bits, scales);
  }
  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    const auto [bits, scales] = AddSections(x.size(), payload);
    kernels::ScaledSignEncodeFeedback(context.backend, x, residual, block_, bits, scales);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::ScaledSignDecodeAdd, payload, context, weight, y);
  }
  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::ScaledSignDecode, payload, context, weight, y);
  }

 private:
  std::pair<std::span<std::uint8_t>, Out> AddSections(std::size_t n, Payload& payload) const {
    const auto bits = payload.Add<std::uint8_t>(Tag::kBits, kernels::BitBytes(n));
    return {bits, payload.Add<float>(Tag::kScale, kernels::BlockCount(n, block_))};
  }
  template <class Kernel>
  Status DecodeBy(Kernel kernel, const PayloadView& payload, const Context& context, float weight,
                  Out y) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const auto bits,
                              payload.Get<std::uint8_t>(Tag::kBits, kernels::BitBytes(y.size())));
    SLIMGRAD_ASSIGN_OR_RETURN(
        const In scales, payload.Get<float>(Tag::kScale, kernels::BlockCount(y.size(), block_)));
    kernel(context.backend, bits, scales, block_, weight, y);
    return {};
  }

  std::size_t block_;
};

SLIMGRAD_METHOD(scaled_sign) {
  return {
      .summary = "signs times the mean magnitude",
      .reference = "Karimireddy et al. 2019",
      .parameters = {Integer("block").Default(4096).AtLeast(1).Doc("elements that share a scale")},
      .example = "scaled_sign(block=4096)",
      .make = [](const Arguments& a) -> Result<Compressor> {
        return Compressor(ScaledSign(a.Size("block")));
      }};
}

}  // namespace
}  // namespace slimgrad
