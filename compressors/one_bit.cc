// One bit an element, decoded to the mean of the block's positive or negative values (Seide et al.
// 2014, 1-bit SGD). The paper's blocks are columns of a weight matrix; here they are runs of
// `block` elements. Wrap it in error_feedback.
#include <algorithm>

#include "compressors/api/registry.h"
#include "kernels/blocks.h"
#include "kernels/sign.h"

namespace slimgrad {
namespace {

class OneBit {
 public:
  explicit OneBit(std::size_t elements) : block_(elements) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    const std::size_t n = tensor.numel();
    const std::size_t levels = SectionBytesOf<float>(kernels::BlockCount(n, block_));
    Traits traits = {.fixed_size = true};
    // At least as good as one mean magnitude a block: |x|_1^2 / (m |x|^2) >= 1 / m for a block of
    // m.
    if (n > 0) traits.delta = 1.0 / static_cast<double>(std::min(block_, n)) * 0.999;
    return Plan{
        .rounds = {Round::Gather(SectionBytesOf<std::uint8_t>(kernels::BitBytes(n)) + 2 * levels)},
        .traits = traits};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const auto [bits, positive, negative] = AddSections(x.size(), payload);
    kernels::OneBitEncode(context.backend, x, block_, bits, positive, negative);
  }
  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    const auto [bits, positive, negative] = AddSections(x.size(), payload);
    kernels::OneBitEncodeFeedback(context.backend, x, residual, block_, bits, positive, negative);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::OneBitDecodeAdd, payload, context, weight, y);
  }
  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::OneBitDecode, payload, context, weight, y);
  }

 private:
  struct Sections {
    std::span<std::uint8_t> bits;
    Out positive, negative;
  };
  Sections AddSections(std::size_t n, Payload& payload) const {
    const std::size_t blocks = kernels::BlockCount(n, block_);
    Sections sections;
    sections.bits = payload.Add<std::uint8_t>(Tag::kBits, kernels::BitBytes(n));
    sections.positive = payload.Add<float>(Tag::kPositive, blocks);
    sections.negative = payload.Add<float>(Tag::kNegative, blocks);
    return sections;
  }
  template <class Kernel>
  Status DecodeBy(Kernel kernel, const PayloadView& payload, const Context& context, float weight,
                  Out y) const {
    const std::size_t blocks = kernels::BlockCount(y.size(), block_);
    SLIMGRAD_ASSIGN_OR_RETURN(const auto bits,
                              payload.Get<std::uint8_t>(Tag::kBits, kernels::BitBytes(y.size())));
    SLIMGRAD_ASSIGN_OR_RETURN(const In positive, payload.Get<float>(Tag::kPositive, blocks));
    SLIMGRAD_ASSIGN_OR_RETURN(const In negative, payload.Get<float>(Tag::kNegative, blocks));
    kernel(context.backend, bits, positive, negative, block_, weight, y);
    return {};
  }

  std::size_t block_;
};

SLIMGRAD_METHOD(one_bit) {
  return {.summary = "signs, decoded to the mean of their side",
          .reference = "Seide et al. 2014",
          .parameters = {Integer("block").Default(4096).AtLeast(1).Doc(
              "elements that share two levels")},
          .example = "one_bit(block=4096)",
          .make = [](const Arguments& a) -> Result<Compressor> {
            return Compressor(OneBit(a.Size("block")));
          }};
}

}  // namespace
}  // namespace slimgrad
