// "| delta_index": ascending indices become gaps of 7 bits a byte. Lossless; at density 1 % about 8
// bits an index.
#include "compressors/api/registry.h"
#include "kernels/index_code.h"

namespace slimgrad {
namespace {

class DeltaIndex final : public Recoder {
 public:
  SectionType from() const override { return {Tag::kIndex, DType::kU32}; }
  SectionType to() const override { return {Tag::kIndex, DType::kU8}; }
  std::size_t Bound(std::size_t count) const override { return kernels::DeltaBound(count); }
  bool fixed_size() const override { return false; }
  bool lossless() const override { return true; }

  void Encode(const Section& section, const Context& context, Payload& out) const override {
    const auto indices = section.As<std::uint32_t>();
    const auto code = out.Add<std::uint8_t>(Tag::kIndex, Bound(indices.size()));
    out.TrimLast(kernels::DeltaEncode(context.backend, indices, code));
  }
  Status Decode(const Section& section, std::size_t count, const Context& context,
                Payload& out) const override {
    return kernels::DeltaDecode(context.backend, section.As<std::uint8_t>(),
                                out.Add<std::uint32_t>(Tag::kIndex, count));
  }
};

SLIMGRAD_METHOD(delta_index) {
  return {.summary = "indices as gaps, 7 bits a byte",
          .reference = "LEB128 (DWARF 5, section 7.6)",
          .example = "top_k(ratio=0.01)|delta_index",
          .recode = [](const Arguments&) -> Result<std::shared_ptr<const Recoder>> {
            return std::shared_ptr<const Recoder>(std::make_shared<DeltaIndex>());
          }};
}

}  // namespace
}  // namespace slimgrad
