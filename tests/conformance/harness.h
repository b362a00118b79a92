// What the conformance tests share: compressors by spec, gradients by seed, runs in lock step and
// as threads, and one rank by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"
#include "tests/conformance/specs.h"

namespace slimgrad::conformance {

using Values = std::vector<float>;
using Row = std::vector<Values>;     // [tensor]
using Gradients = std::vector<Row>;  // [rank][tensor]
using Bytestring = std::vector<std::byte>;

// The compressor of a spec; a spec that does not parse ends the test program with its error.
Compressor Make(std::string_view spec);

// Whether error feedback is anywhere in a spec; then it takes none around it.
inline bool HasErrorFeedback(std::string_view spec) {
  return spec.find("error_feedback(") != std::string_view::npos;
}

// "top_k(k=5)|delta_index" -> "top_k_k_5_delta_index"
std::string TestName(const ::testing::TestParamInfo<Spec>& info);

// `names` are made up: "t0", "t1" ...
std::vector<TensorSpec> Tensors(const std::vector<std::vector<std::int64_t>>& shapes);

// A matrix that power_sgd makes smaller, a vector of several blocks, a small matrix, a scalar.
std::vector<TensorSpec> UsualTensors();

// Normal values with a few large ones among them, a function of the arguments alone.
Values RandomValues(std::size_t n, std::uint64_t seed);
Gradients RandomGradients(std::span<const TensorSpec> tensors, int world, std::uint64_t seed);

// Unit roundoff of fp32.
inline constexpr double kUnit = 0x1p-24;

// How far the rounding of a combined mean to the wire's dtype moves a value: relative * |value| +
// absolute. It happens after every rank has settled its residual. Zero for gathered rounds.
struct WireRounding {
  double relative = 0, absolute = 0;
};
WireRounding RoundingOf(const Plan& plan);

// Equal bit for bit: +0 differs from -0.
bool SameBits(std::span<const float> a, std::span<const float> b);
bool AllFinite(std::span<const float> values);

// Every lasting field of a state, by path, as bytes and (for fp32 fields) as values.
struct StateField {
  std::string path;
  DType dtype;
  Bytestring bytes;
  Values values;
  bool operator==(const StateField& other) const {
    return path == other.path && dtype == other.dtype && bytes == other.bytes;
  }
};
std::vector<StateField> FieldsOf(State& state);
// The field of this path; empty when there is none.
Values FieldOf(State& state, std::string_view path);

// All ranks in lock step on this thread.
class Ranks {
 public:
  Ranks(std::string_view spec, int world, std::vector<TensorSpec> tensors,
        ExchangeOptions options = {});

  Status Step(const Gradients& gradients);
  void MustStep(const Gradients& gradients);

  const Gradients& averages() const { return averages_; }  // of the last step, by rank
  Gradients& averages() { return averages_; }
  Exchange& exchange() { return *exchange_; }
  int world() const { return group_.size(); }
  // Of all tensors of a rank, in order.
  std::vector<StateField> Fields(int rank);

 private:
  LockStepGroup group_;
  std::unique_ptr<Exchange> exchange_;
  Gradients averages_;
};

// What a rank's run leaves behind.
struct RankLog {
  std::vector<Row> averages;  // [step][tensor]
  std::vector<std::uint64_t> sent, received;
  std::vector<std::uint64_t> payload_bytes;  // lock step: of all ranks
  Bytestring state;                          // as SaveState writes it
};
using GradientsOfStep = std::function<Gradients(std::uint64_t step)>;

// The run of a group's one local rank, as its thread or process sees it.
RankLog RunOneRank(Group& group, std::string_view spec, const std::vector<TensorSpec>& tensors,
                   int steps, const GradientsOfStep& gradients,
                   const ExchangeOptions& options = {});
// The runs of all ranks.
std::vector<RankLog> RunInLockStep(std::string_view spec, int world,
                                   const std::vector<TensorSpec>& tensors, int steps,
                                   const GradientsOfStep& gradients, ExchangeOptions options = {});
std::vector<RankLog> RunAsThreads(std::string_view spec, int world,
                                  const std::vector<TensorSpec>& tensors, int steps,
                                  const GradientsOfStep& gradients, ExchangeOptions options = {});

// One rank alone with its compressor, no group: every round's payload meets only itself. Payload
// memory is exactly the plan's bound, so that what is written beyond it stops the process.
class OneRank {
 public:
  OneRank(Compressor compressor, TensorSpec tensor, std::uint32_t rank = 0, std::uint64_t seed = 1,
          Backend backend = {});

  // The average of a step, which for one rank is what its payload stands for.
  Values Step(In x);

  const Plan& plan() const { return plan_; }
  State& state() { return state_; }
  // Of the last step, one a round: the bodies of gathered rounds, the values of combined ones.
  const std::vector<Bytestring>& payloads() const { return payloads_; }
  Context& context() { return context_; }
  const Compressor& compressor() const { return compressor_; }

 private:
  Compressor compressor_;
  TensorSpec tensor_;
  Scratch scratch_;
  Counters counters_;
  Context context_;
  Plan plan_;
  State state_;
  std::vector<Bytestring> payloads_;
};

class ForEverySpec : public ::testing::TestWithParam<Spec> {
 protected:
  std::string spec() const { return GetParam().text; }
  bool random() const { return GetParam().draws == Draws::kRandomBits; }
};

#define SLIMGRAD_FOR_EVERY_SPEC(suite) \
  INSTANTIATE_TEST_SUITE_P(Specs, suite, ::testing::ValuesIn(kSpecs), TestName)

}  // namespace slimgrad::conformance
