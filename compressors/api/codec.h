// The concept that nearly every method satisfies: one payload a step, no memory. A codec is a plain
// value type that holds its parameters.
//
//   Result<Plan> MakePlan(const TensorSpec&) const;
//       Exactly one round, gathered or combined to a mean (CHECKed by AverageOfCodec). Refuses
//       tensors that the method cannot do.
//   void Encode(In x, const Context&, Payload&) const;
//       x is finite. Writes the payload in place.
//   Status DecodeAdd(const PayloadView&, const Context&, float weight, Out y) const;
//       y = y + weight * x_hat, elementwise. Trusts nothing in the payload; on error y is
//       unspecified.
//
// Optional, for codecs that do it in fewer passes over memory; the bits are those of the calls that
// AnyCodec makes in their place:
//
//   void EncodeFeedback(In x, Out residual, const Context&, Payload&) const;
//       residual = residual + x (AddSaturated); encodes that; then takes from it what the payload
//       decodes to.
//   Status Decode(const PayloadView&, const Context&, float weight, Out y) const;
//       y = 0 + weight * x_hat, whatever y was; otherwise as DecodeAdd.
//
// Ownership: everything is borrowed for the call.
// Threads: const calls may run at once with different contexts.
// Determinism: results depend on the arguments alone. Loops over elements are kernels, see
// kernels/.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <utility>

#include "compressors/api/context.h"
#include "compressors/api/plan.h"
#include "core/payload.h"
#include "core/status.h"

namespace slimgrad {

template <class C>
concept Codec = requires(const C c, const TensorSpec& tensor, In x, const Context& context,
                         Payload& payload, const PayloadView& view, Out y) {
  { c.MakePlan(tensor) } -> std::same_as<Result<Plan>>;
  { c.Encode(x, context, payload) } -> std::same_as<void>;
  { c.DecodeAdd(view, context, 1.0F, y) } -> std::same_as<Status>;
};

// Any codec behind one type; cheap to copy. Itself a Codec.
class AnyCodec {
 public:
  template <class C>
  requires(Codec<C> && !std::same_as<C, AnyCodec>) explicit AnyCodec(C codec)
      : impl_(std::make_shared<Model<C>>(std::move(codec))) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const { return impl_->MakePlan(tensor); }
  void Encode(In x, const Context& context, Payload& payload) const {
    impl_->Encode(x, context, payload);
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return impl_->DecodeAdd(payload, context, weight, y);
  }
  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    impl_->EncodeFeedback(x, residual, context, payload);
  }
  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return impl_->Decode(payload, context, weight, y);
  }

  // The payload's sections, where the codec declares `static constexpr SectionType kSections[]`:
  // what recoders may take up. Empty otherwise.
  std::span<const SectionType> sections() const { return impl_->Sections(); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Result<Plan> MakePlan(const TensorSpec&) const = 0;
    virtual void Encode(In, const Context&, Payload&) const = 0;
    virtual Status DecodeAdd(const PayloadView&, const Context&, float, Out) const = 0;
    virtual void EncodeFeedback(In, Out, const Context&, Payload&) const;
    virtual Status Decode(const PayloadView&, const Context&, float, Out) const;
    virtual std::span<const SectionType> Sections() const = 0;
  };
  template <class C>
  struct Model final : Base {
    explicit Model(C v) : codec(std::move(v)) {}
    Result<Plan> MakePlan(const TensorSpec& t) const override { return codec.MakePlan(t); }
    void Encode(In x, const Context& c, Payload& p) const override { codec.Encode(x, c, p); }
    Status DecodeAdd(const PayloadView& p, const Context& c, float w, Out y) const override {
      return codec.DecodeAdd(p, c, w, y);
    }
    void EncodeFeedback(In x, Out residual, const Context& c, Payload& p) const override {
      if constexpr (requires { codec.EncodeFeedback(x, residual, c, p); })
        codec.EncodeFeedback(x, residual, c, p);
      else
        Base::EncodeFeedback(x, residual, c, p);
    }
    Status Decode(const PayloadView& p, const Context& c, float w, Out y) const override {
      if constexpr (requires { codec.Decode(p, c, w, y); })
        return codec.Decode(p, c, w, y);
      else
        return Base::Decode(p, c, w, y);
    }
    std::span<const SectionType> Sections() const override {
      if constexpr (requires { codec.sections(); })
        return codec.sections();
      else if constexpr (requires { C::kSections; })
        return C::kSections;
      else
        return {};
    }
    C codec;
  };
  std::shared_ptr<const Base> impl_;
};

}  // namespace slimgrad
