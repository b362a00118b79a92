// The one handle of the library: any method, wrapped or not, as rounds of "say what to send" and
// "take what came back".
//
// A Protocol is the wide concept, for methods with several rounds or with memory and for wrappers:
//
//   Result<Plan> MakePlan(const TensorSpec&) const;
//   State Init(const Context&) const;
//       Equal arguments, equal state; context.step is 0.
//   void Send(int round, In x, State&, const Context&, Payload&) const;
//       x is the same finite gradient in every round of a step. Fills this rank's payload.
//   Status Receive(int round, const Inbox&, State&, const Context&, Out average) const;
//       Takes what came back. The last round overwrites `average` with the averaged gradient, equal
//       on all ranks; an empty `average` means that the caller does not want it (another rank of
//       this process has it) and that only the state is to follow. Trusts nothing in the inbox. On
//       error `average` is unspecified.
//   Status SubtractSent(const PayloadView& own, State&, const Context&, Out y) const;
//       After the last Receive: y = y - this rank's share of what went into the average, so that
//       what remains of the gradient can be carried to the next step. `own` is this rank's payload
//       of the last round.
//
// Optional, where error feedback takes fewer passes over memory so; the bits are those of the calls
// that Compressor makes in their place:
//
//   void SendFeedback(int round, In x, Out residual, State&, const Context&, Payload&) const;
//       As Send of the corrected gradient: round 0 makes it, residual = residual + x
//       (AddSaturated).
//   Status ReceiveFeedback(int round, bool last, const Inbox&, State&, const Context&,
//                          Out residual, Out average) const;
//       As Receive. At the latest when the last round returns, the residual has lost what
//       SubtractSent would take from it.
//
// A Codec becomes a Protocol by itself: AverageOfCodec below.
// Threads: const calls may run at once with different states and contexts.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "compressors/api/codec.h"
#include "core/state.h"

namespace slimgrad {

// What came back in a round.
struct Inbox {
  // kGather: one a rank, in rank order. kCombine: the one combined payload.
  std::span<const PayloadView> payloads;
  PayloadView own;  // this rank's payload, as it was sent
};

template <class P>
concept Protocol = requires(const P p, const TensorSpec& tensor, const Context& context, In x,
                            typename P::State& state, Payload& payload, const Inbox& inbox, Out y) {
  { p.MakePlan(tensor) } -> std::same_as<Result<Plan>>;
  { p.Init(context) } -> std::same_as<typename P::State>;
  { p.Send(0, x, state, context, payload) } -> std::same_as<void>;
  { p.Receive(0, inbox, state, context, y) } -> std::same_as<Status>;
  { p.SubtractSent(inbox.own, state, context, y) } -> std::same_as<Status>;
};

struct NoState {
  void Fields(FieldVisitor&) {}
};

// One round in which everybody's decoded payloads are averaged in rank order: sum, then one
// division.
class AverageOfCodec {
 public:
  using State = NoState;
  explicit AverageOfCodec(AnyCodec codec) : codec_(std::move(codec)) {}

  // CHECKs that the codec keeps to its contract: one round, and combined to a mean if at all.
  Result<Plan> MakePlan(const TensorSpec& tensor) const;
  State Init(const Context&) const { return {}; }
  void Send(int, In x, State&, const Context& context, Payload& payload) const {
    codec_.Encode(x, context, payload);
  }
  Status Receive(int, const Inbox& inbox, State&, const Context& context, Out average) const;
  Status SubtractSent(const PayloadView& own, State&, const Context& context, Out y) const {
    return codec_.DecodeAdd(own, context, -1.0F, y);
  }
  // A codec's payload says at once what it stands for: the residual is settled before it is sent.
  void SendFeedback(int, In x, Out residual, State&, const Context& context,
                    Payload& payload) const {
    codec_.EncodeFeedback(x, residual, context, payload);
  }
  Status ReceiveFeedback(int round, bool, const Inbox& inbox, State& state, const Context& context,
                         Out, Out average) const {
    return Receive(round, inbox, state, context, average);
  }

 private:
  AnyCodec codec_;
};

// Immutable, cheap to copy, itself a Protocol: so wrappers nest.
class Compressor {
 public:
  using State = slimgrad::State;

  template <class P>
  requires(Protocol<P> && !std::same_as<P, Compressor>) explicit Compressor(P protocol)
      : impl_(std::make_shared<Model<P>>(std::move(protocol))) {}
  explicit Compressor(AnyCodec codec) : Compressor(AverageOfCodec(codec)) {
    codec_ = std::move(codec);
  }
  template <class C>
  requires(Codec<C> && !Protocol<C> && !std::same_as<C, AnyCodec>) explicit Compressor(C codec)
      : Compressor(AnyCodec(std::move(codec))) {}

  Result<Plan> MakePlan(const TensorSpec& tensor) const { return impl_->MakePlan(tensor); }
  State Init(const Context& context) const { return impl_->Init(context); }
  void Send(int round, In x, State& state, const Context& context, Payload& payload) const {
    impl_->Send(round, x, state, context, payload);
  }
  Status Receive(int round, const Inbox& inbox, State& state, const Context& context,
                 Out average) const {
    return impl_->Receive(round, inbox, state, context, average);
  }
  Status SubtractSent(const PayloadView& own, State& state, const Context& context, Out y) const {
    return impl_->SubtractSent(own, state, context, y);
  }
  void SendFeedback(int round, In x, Out residual, State& state, const Context& context,
                    Payload& payload) const {
    impl_->SendFeedback(round, x, residual, state, context, payload);
  }
  Status ReceiveFeedback(int round, bool last, const Inbox& inbox, State& state,
                         const Context& context, Out residual, Out average) const {
    return impl_->ReceiveFeedback(round, last, inbox, state, context, residual, average);
  }

  // The codec inside, if this is a bare codec: what recoders take up.
  const std::optional<AnyCodec>& codec() const { return codec_; }

  // Canonical spec text, defaults filled in, and its hash: set by MakeCompressor (registry.h).
  const std::string& spec() const { return spec_; }
  std::uint64_t spec_hash() const;
  void set_spec(std::string canonical) { spec_ = std::move(canonical); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Result<Plan> MakePlan(const TensorSpec&) const = 0;
    virtual slimgrad::State Init(const Context&) const = 0;
    virtual void Send(int, In, slimgrad::State&, const Context&, Payload&) const = 0;
    virtual Status Receive(int, const Inbox&, slimgrad::State&, const Context&, Out) const = 0;
    virtual Status SubtractSent(const PayloadView&, slimgrad::State&, const Context&,
                                Out) const = 0;
    virtual void SendFeedback(int, In, Out residual, slimgrad::State&, const Context&,
                              Payload&) const;
    virtual Status ReceiveFeedback(int, bool last, const Inbox&, slimgrad::State&, const Context&,
                                   Out residual, Out average) const;
  };
  template <class P>
  struct Model final : Base {
    using S = typename P::State;
    explicit Model(P v) : protocol(std::move(v)) {}
    Result<Plan> MakePlan(const TensorSpec& t) const override { return protocol.MakePlan(t); }
    slimgrad::State Init(const Context& c) const override {
      return slimgrad::State(protocol.Init(c));
    }
    void Send(int r, In x, slimgrad::State& s, const Context& c, Payload& p) const override {
      protocol.Send(r, x, s.As<S>(), c, p);
    }
    Status Receive(int r, const Inbox& i, slimgrad::State& s, const Context& c,
                   Out y) const override {
      return protocol.Receive(r, i, s.As<S>(), c, y);
    }
    Status SubtractSent(const PayloadView& own, slimgrad::State& s, const Context& c,
                        Out y) const override {
      return protocol.SubtractSent(own, s.As<S>(), c, y);
    }
    void SendFeedback(int r, In x, Out residual, slimgrad::State& s, const Context& c,
                      Payload& p) const override {
      if constexpr (requires { protocol.SendFeedback(r, x, residual, s.As<S>(), c, p); })
        protocol.SendFeedback(r, x, residual, s.As<S>(), c, p);
      else
        Base::SendFeedback(r, x, residual, s, c, p);
    }
    Status ReceiveFeedback(int r, bool last, const Inbox& i, slimgrad::State& s, const Context& c,
                           Out residual, Out y) const override {
      if constexpr (requires { protocol.ReceiveFeedback(r, last, i, s.As<S>(), c, residual, y); })
        return protocol.ReceiveFeedback(r, last, i, s.As<S>(), c, residual, y);
      else
        return Base::ReceiveFeedback(r, last, i, s, c, residual, y);
    }
    P protocol;
  };

  std::shared_ptr<const Base> impl_;
  std::optional<AnyCodec> codec_;
  std::string spec_;
};

}  // namespace slimgrad
