#include "compressors/api/compressor.h"

#include "core/hash.h"
#include "kernels/elementwise.h"

namespace slimgrad {
namespace {

Status SumDecoded(const AnyCodec& codec, const Inbox& inbox, const Context& context, float weight,
                  Out sum) {
  SLIMGRAD_RETURN_IF_ERROR(codec.Decode(inbox.payloads[0], context, weight, sum));
  for (const PayloadView& payload : inbox.payloads.subspan(1))
    SLIMGRAD_RETURN_IF_ERROR(codec.DecodeAdd(payload, context, weight, sum));
  return {};
}

}  // namespace

Result<Plan> AverageOfCodec::MakePlan(const TensorSpec& tensor) const {
  SLIMGRAD_ASSIGN_OR_RETURN(Plan plan, codec_.MakePlan(tensor));
  SLIMGRAD_CHECK(plan.rounds.size() == 1);
  // Receive takes one payload for the average: of a sum or a maximum it would be wrong unnoticed.
  const Round& round = plan.rounds[0];
  SLIMGRAD_CHECK(round.kind == Round::Kind::kGather || round.op == kernels::CombineOp::kMean);
  return plan;
}

Status AverageOfCodec::Receive(int, const Inbox& inbox, State&, const Context& context,
                               Out average) const {
  if (average.empty()) return {};
  SLIMGRAD_RETURN_IF_ERROR(SumDecoded(codec_, inbox, context, 1.0F, average));
  // A combined payload is the mean already, and n = 1 needs no division.
  const std::size_t n = inbox.payloads.size();
  if (n == 1) return {};
  ScratchScope scope(*context.scratch);
  const std::span<std::uint64_t> overflowed = scope.Take<std::uint64_t>(1);
  kernels::Divide(context.backend, static_cast<float>(n), average, overflowed.data());
  // Where a sum overflowed: weighted first, and by a little less than 1 / n, so that roundings
  // cannot add up to an overflow either: docs/numerics.md.
  Context again = context;
  again.backend.only_if = overflowed.data();
  const auto ranks = static_cast<double>(n);
  return SumDecoded(codec_, inbox, again, static_cast<float>((1 - ranks * 0x1p-23) / ranks),
                    average);
}

void Compressor::Base::SendFeedback(int round, In x, Out residual, slimgrad::State& state,
                                    const Context& context, Payload& payload) const {
  if (round == 0) kernels::AddSaturated(context.backend, x, residual);
  Send(round, residual, state, context, payload);
}

Status Compressor::Base::ReceiveFeedback(int round, bool last, const Inbox& inbox,
                                         slimgrad::State& state, const Context& context,
                                         Out residual, Out average) const {
  SLIMGRAD_RETURN_IF_ERROR(Receive(round, inbox, state, context, average));
  return last ? SubtractSent(inbox.own, state, context, residual) : Status();
}

std::uint64_t Compressor::spec_hash() const { return Hash64(spec_); }

}  // namespace slimgrad
