#include "compressors/api/recoder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/elementwise.h"

namespace slimgrad {
namespace {

class Recoded {
 public:
  Recoded(AnyCodec codec, std::shared_ptr<const Recoder> recoder)
      : codec_(std::move(codec)), recoder_(std::move(recoder)) {
    bool found = false, values = false;
    for (SectionType type : codec_.sections()) {
      found |= type == recoder_->from();
      values |= type.tag == Tag::kValue;
      sections_.push_back(type == recoder_->from() ? recoder_->to() : type);
    }
    SLIMGRAD_CHECK(found && values);
  }

  std::span<const SectionType> sections() const { return sections_; }

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    SLIMGRAD_ASSIGN_OR_RETURN(Plan plan, codec_.MakePlan(tensor));
    SLIMGRAD_CHECK(plan.rounds[0].kind == Round::Kind::kGather);
    const std::size_t inner = plan.rounds[0].bound;
    // The recoded section is at most the whole of the inner payload, so this bounds the new one.
    plan.rounds[0] = Round::Gather(
        inner + SectionBytes(recoder_->Bound(inner / SizeOf(recoder_->from().dtype))));
    plan.traits.fixed_size &= recoder_->fixed_size();
    if (!recoder_->lossless()) plan.traits = {.fixed_size = plan.traits.fixed_size};
    return plan;
  }

  void Encode(In x, const Context& context, Payload& payload) const {
    ScratchScope scope(*context.scratch);
    Payload inner(scope.Take(InnerBound(context)), context.backend.device);
    codec_.Encode(x, context, inner);
    RecodeSections(inner.view(), context, payload);
  }

  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    ScratchScope scope(*context.scratch);
    Payload inner(scope.Take(InnerBound(context)), context.backend.device);
    if (recoder_->lossless()) {
      codec_.EncodeFeedback(x, residual, context, inner);
      return RecodeSections(inner.view(), context, payload);
    }
    // What is sent is known only when it is recoded.
    kernels::AddSaturated(context.backend, x, residual);
    codec_.Encode(residual, context, inner);
    RecodeSections(inner.view(), context, payload);
    SLIMGRAD_CHECK(DecodeAdd(payload.view(), context, -1.0F, residual).ok());
  }

  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(&AnyCodec::DecodeAdd, payload, context, weight, y);
  }

  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(&AnyCodec::Decode, payload, context, weight, y);
  }

 private:
  template <class Function>
  Status DecodeBy(Function decode, const PayloadView& payload, const Context& context, float weight,
                  Out y) const {
    ScratchScope scope(*context.scratch);
    const std::size_t bound = InnerBound(context);
    Payload inner(scope.Take(bound), context.backend.device);
    // Sections hold as many elements as there are values; more than the inner codec may send is
    // refused here.
    const Section* values = payload.Find(Tag::kValue);
    if (!values) return Corrupt("payload: expected a section value, found none");
    for (const Section& section : payload.sections()) {
      const bool recoded = section.type == recoder_->to();
      const std::size_t bytes =
          recoded ? values->count() * SizeOf(recoder_->from().dtype) : section.bytes.size();
      if (bytes > bound || SectionBytes(bytes) > bound - inner.body().size())
        return Corrupt("payload: expected sections of at most " + std::to_string(bound) +
                       " bytes, found more");
      if (recoded)
        SLIMGRAD_RETURN_IF_ERROR(recoder_->Decode(section, values->count(), context, inner));
      else
        Copy(section, context, inner);
    }
    return (codec_.*decode)(inner.view(), context, weight, y);
  }

  void RecodeSections(const PayloadView& inner, const Context& context, Payload& payload) const {
    for (const Section& section : inner.sections())
      if (section.type == recoder_->from())
        recoder_->Encode(section, context, payload);
      else
        Copy(section, context, payload);
  }

  std::size_t InnerBound(const Context& context) const {
    return codec_.MakePlan(*context.tensor)->rounds[0].bound;
  }

  static void Copy(const Section& section, const Context& context, Payload& to) {
    kernels::CopyBytes(context.backend, section.bytes,
                       to.AddBytes(section.type, section.bytes.size()));
  }

  AnyCodec codec_;
  std::shared_ptr<const Recoder> recoder_;
  std::vector<SectionType> sections_;
};

}  // namespace

AnyCodec Recode(AnyCodec codec, std::shared_ptr<const Recoder> recoder) {
  return AnyCodec(Recoded(std::move(codec), std::move(recoder)));
}

}  // namespace slimgrad
