// "| fp16_values": the values of a sparse payload in half precision; what does not fit saturates.
#include "compressors/api/registry.h"
#include "kernels/convert.h"

namespace slimgrad {
namespace {

class Fp16Values final : public Recoder {
 public:
  SectionType from() const override { return {Tag::kValue, DType::kF32}; }
  SectionType to() const override { return {Tag::kValue, DType::kF16}; }
  std::size_t Bound(std::size_t count) const override { return count * sizeof(half_bits); }
  bool fixed_size() const override { return true; }
  bool lossless() const override { return false; }

  void Encode(const Section& section, const Context& context, Payload& out) const override {
    const In values = section.As<float>();
    kernels::F32ToF16(context.backend, values, out.Add<half_bits>(Tag::kValue, values.size()),
                      kernels::Overflow::kSaturate, &context.counters->saturated);
  }
  Status Decode(const Section& section, std::size_t count, const Context& context,
                Payload& out) const override {
    kernels::F16ToF32(context.backend, section.As<half_bits>(), out.Add<float>(Tag::kValue, count));
    return {};
  }
};

SLIMGRAD_METHOD(fp16_values) {
  return {.summary = "sparse values in fp16",
          .reference = "IEEE 754-2019, binary16",
          .example = "top_k(ratio=0.01)|fp16_values",
          .recode = [](const Arguments&) -> Result<std::shared_ptr<const Recoder>> {
            return std::shared_ptr<const Recoder>(std::make_shared<Fp16Values>());
          }};
}

}  // namespace
}  // namespace slimgrad
