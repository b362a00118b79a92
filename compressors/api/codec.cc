#include "compressors/api/codec.h"

#include "core/check.h"
#include "kernels/elementwise.h"

namespace slimgrad {

void AnyCodec::Base::EncodeFeedback(In x, Out residual, const Context& context,
                                    Payload& payload) const {
  kernels::AddSaturated(context.backend, x, residual);
  Encode(residual, context, payload);
  SLIMGRAD_CHECK(DecodeAdd(payload.view(), context, -1.0F, residual).ok());
}

Status AnyCodec::Base::Decode(const PayloadView& payload, const Context& context, float weight,
                              Out y) const {
  kernels::Fill(context.backend, 0.0F, y);
  return DecodeAdd(payload, context, weight, y);
}

}  // namespace slimgrad
