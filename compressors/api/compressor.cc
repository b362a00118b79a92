#include "compressors/api/compressor.h"

#include "core/hash.h"
#include "kernels/elementwise.h"

namespace slimgrad {

Status AverageOfCodec::Receive(int, const Inbox& inbox, State&, const Context& context,
                               Out average) const {
  if (average.empty()) return {};
  kernels::Fill(context.backend, 0.0F, average);
  for (const PayloadView& payload : inbox.payloads)
    SLIMGRAD_RETURN_IF_ERROR(codec_.DecodeAdd(payload, context, 1.0F, average));
  // A combined payload is the mean already, and n = 1 needs no division.
  if (inbox.payloads.size() > 1)
    kernels::Divide(context.backend, static_cast<float>(inbox.payloads.size()), average);
  return {};
}

std::uint64_t Compressor::spec_hash() const { return Hash64(spec_); }

}  // namespace slimgrad
