// Runs a compressor's rounds over a group: gradients in, the averaged gradient out. The only place
// where methods and transports meet, so every byte is counted once, whatever the method and the
// transport.
//
//   SLIMGRAD_ASSIGN_OR_RETURN(auto exchange,
//                             Exchange::Create(group, compressor, tensors, options));
//   SLIMGRAD_RETURN_IF_ERROR(exchange->Step(gradients, averages, {.learning_rate = 0.1}));
//
// A step: (1) every gradient is read once, and all ranks agree whether all are finite; if not, the
// step is skipped on all of them with every state and average untouched. (2) Tensor by tensor, in
// the order given at set-up, the rounds run. (3) The step counter advances.
//
// Determinism: averages, states and payloads depend on gradients, spec, seed and step alone, and
// averages are bit for bit equal on all ranks.
// Allocation: none on the heap in steady state (a failing or skipped step may, for its message).
// Devices: with a backend of a GPU, gradients, averages, states and payloads all lie there, and a
// step waits for it twice: to know whether gradients are finite, and at its end. A payload whose
// size depends on its values (| delta_index) waits for each tensor too. encode_ns and decode_ns are
// then the time to put the work on the stream.
// Threads: one at a time on an object.
// Memory: gradients and averages are borrowed for the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/frames.h"
#include "comm/group.h"
#include "comm/traffic.h"
#include "compressors/api/compressor.h"
#include "core/frame.h"
#include "core/state_file.h"

namespace slimgrad {

enum class NonFinite : std::uint8_t {
  kSkip,     // look for NaN and infinity, and skip the step where there is one
  kTrusted,  // the trainer has looked already, as a gradient scaler does; gradients are not read
};

struct ExchangeOptions {
  std::uint64_t seed = 0;
  NonFinite nonfinite = NonFinite::kSkip;
  Backend backend = {};
  // Nanoseconds of any steady clock: measures encode_ns and decode_ns. The library itself reads no
  // clock.
  std::function<std::uint64_t()> clock_ns = {};
};

struct StepOptions {
  double learning_rate = 0;
  double loss_scale = 1;
};

// What the last step did. Sums over this object's local ranks, where nothing else is said.
struct StepReport {
  std::uint64_t step = 0;
  bool skipped = false;
  std::string skip_reason;  // names rank and tensor
  Traffic traffic;
  std::uint64_t payload_bytes = 0;  // frames of gathered rounds, values of combined ones
  std::uint64_t saturated = 0;      // finite values that the wire type could not hold
  std::uint64_t encode_ns = 0;      // Send and sealing, of all local ranks
  std::uint64_t decode_ns = 0;      // opening and Receive, of the first local rank alone

  explicit StepReport(int world) : traffic(world) {}

  void Begin(std::uint64_t next) {
    step = next;
    skipped = false;
    skip_reason.clear();
    traffic.Clear();
    payload_bytes = saturated = encode_ns = decode_ns = 0;
  }
};

class Exchange {
 public:
  // Leaks what a group that has failed still holds.
  ~Exchange();

  // Compares spec, tensors, options and version with all other ranks before anything else:
  // kMismatch names the rank and the field. Refuses tensors that the compressor cannot do,
  // duplicate names, devices without kernels, and a compressor without spec(): all such would pass
  // for the same. The group is borrowed and outlives the exchange.
  static Result<std::unique_ptr<Exchange>> Create(Group& group, Compressor compressor,
                                                  std::vector<TensorSpec> tensors,
                                                  ExchangeOptions options);

  // gradients[l][t]: local rank l's gradient of tensor t, of the dtype and element count of its
  // spec. averages[l][t] likewise; either one row for each local rank, or one row only: then the
  // others' averages, which are equal, are not written. Gradients and averages do not overlap.
  // After an error the group and the averages are unusable; what was not sent is still in the
  // states' residuals. kOutOfMemory: working memory, which the first steps take. On a device, no
  // work is left behind.
  Status Step(std::span<const std::span<const ConstView>> gradients,
              std::span<const std::span<const View>> averages, const StepOptions& options);

  const StepReport& report() const { return report_; }
  std::uint64_t next_step() const { return step_; }
  std::span<const TensorSpec> tensors() const { return tensors_; }
  std::span<const Plan> plans() const { return plans_; }
  const Compressor& compressor() const { return compressor_; }

  // State of local rank l: as it is (for tests and metrics), as the bytes of a state file
  // (core/state_file.h), and from such bytes. RestoreState refuses another spec, rank, world, seed
  // or set of tensors, and then changes nothing; all local ranks must be restored to the same step
  // (kMismatch at the next Step otherwise).
  State& state(std::size_t l, std::size_t t) { return locals_[l].states[t]; }
  Result<std::vector<std::byte>> SaveState(std::size_t l);
  Status RestoreState(std::size_t l, std::span<const std::byte> file);

 private:
  struct Local {
    std::uint32_t rank = 0;
    std::vector<State> states;  // [tensor]
    std::uint64_t restored_step = 0;
    Buffer<std::byte> frame;
    Buffer<float> gradient;  // fp32 copy of a 16-bit gradient
    OwnFrame own;            // what the round sends: lies in `frame`
    Bytes message;           // all of it, or of a combined round the values
  };

  Exchange(Group& group, Compressor compressor, std::vector<TensorSpec> tensors,
           ExchangeOptions options);
  Status SetUp();
  void Allocate();
  template <class Work>
  Status Settled(std::string_view what, const Work& work);

  Status CheckViews(std::span<const std::span<const ConstView>> gradients,
                    std::span<const std::span<const View>> averages) const;
  void Look(std::span<const std::span<const ConstView>> gradients);
  Status AgreeToGo(std::span<const std::span<const ConstView>> gradients, bool look);
  Status RunStep(std::span<const std::span<const ConstView>> gradients,
                 std::span<const std::span<const View>> averages);
  Status RunTensor(std::size_t t, std::span<const std::span<const ConstView>> gradients,
                   std::span<const std::span<const View>> averages);
  Status RunRound(std::size_t t, std::size_t r);
  void Send(std::size_t t, std::size_t r, Local& local, In x);
  Status Gather(std::size_t t, std::size_t r);
  Status Combine(std::size_t t, std::size_t r);

  Context MakeContext(std::size_t t, const Local& local);
  FrameInfo InfoOf(std::size_t t, std::size_t r) const;
  StateHeader HeaderOf(std::size_t l) const;
  std::vector<TensorState> TensorStatesOf(std::size_t l);
  std::uint64_t Now() const { return options_.clock_ns ? options_.clock_ns() : 0; }

  Group& group_;
  Compressor compressor_;
  std::vector<TensorSpec> tensors_;
  ExchangeOptions options_;
  std::uint64_t spec_hash_;
  std::vector<Plan> plans_;
  std::vector<Local> locals_;
  Scratch scratch_;
  Buffer<Counters> counters_;  // one, on the device
  Counters counted_;           // as it was after the last step
  StepOptions step_options_;
  std::uint64_t step_ = 0;
  bool agreed_ = false;  // on the step, since set-up or the last restore
  StepReport report_;

  // Sized at set-up, used within a step.
  Buffer<std::byte> combined_;
  std::vector<Buffer<float>> wide_averages_;
  std::vector<Bytes> messages_;
  std::vector<PayloadView> views_;
  std::vector<In> inputs_;
  std::vector<Out> outputs_;
  Buffer<std::uint64_t> non_finite_;  // [local][tensor], on the device
  std::vector<std::uint64_t> found_;  // the same on the host
  Buffer<std::uint64_t> flags_;
};

}  // namespace slimgrad
