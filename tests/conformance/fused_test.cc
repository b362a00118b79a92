// The forms that a method may add to save passes over memory (EncodeFeedback and Decode of codecs,
// SendFeedback and ReceiveFeedback of protocols) give the bits of the calls that they stand for.
#include <cmath>

#include "kernels/elementwise.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

constexpr int kSteps = 3;

struct Memory {
  Buffer<float> residual;
  State inner;
  int rounds = 0;
  void Fields(FieldVisitor& visit) {
    visit("residual", residual);
    visit("inner", inner);
  }
};

// What error feedback around both is made of here; neither is nested.
class Around {
 public:
  using State = Memory;

  explicit Around(Compressor inner) : inner_(std::move(inner)) {}
  Result<Plan> MakePlan(const TensorSpec& tensor) const { return inner_.MakePlan(tensor); }
  Memory Init(const Context& context) const {
    return {Buffer<float>(context.tensor->numel()), inner_.Init(context),
            static_cast<int>(inner_.MakePlan(*context.tensor)->rounds.size())};
  }
  Status SubtractSent(const PayloadView& own, Memory& memory, const Context& context, Out y) const {
    return inner_.SubtractSent(own, memory.inner, context, y);
  }

 protected:
  Compressor inner_;
};

class Fused final : public Around {
 public:
  using Around::Around;
  void Send(int round, In x, Memory& memory, const Context& context, Payload& payload) const {
    inner_.SendFeedback(round, x, memory.residual.span(), memory.inner, context, payload);
  }
  Status Receive(int round, const Inbox& inbox, Memory& memory, const Context& context,
                 Out average) const {
    return inner_.ReceiveFeedback(round, round + 1 == memory.rounds, inbox, memory.inner, context,
                                  memory.residual.span(), average);
  }
};

class StepByStep final : public Around {
 public:
  using Around::Around;
  void Send(int round, In x, Memory& memory, const Context& context, Payload& payload) const {
    if (round == 0) kernels::AddSaturated(context.backend, x, memory.residual.span());
    inner_.Send(round, memory.residual.span(), memory.inner, context, payload);
  }
  Status Receive(int round, const Inbox& inbox, Memory& memory, const Context& context,
                 Out average) const {
    SLIMGRAD_RETURN_IF_ERROR(inner_.Receive(round, inbox, memory.inner, context, average));
    if (round + 1 < memory.rounds) return {};
    return inner_.SubtractSent(inbox.own, memory.inner, context, memory.residual.span());
  }
};

// A method that offers no form of its own, so that the library's stand-ins run.
class Plain {
 public:
  using State = slimgrad::State;

  explicit Plain(Compressor inner) : inner_(std::move(inner)) {}
  Result<Plan> MakePlan(const TensorSpec& tensor) const { return inner_.MakePlan(tensor); }
  State Init(const Context& context) const { return inner_.Init(context); }
  void Send(int round, In x, State& state, const Context& context, Payload& payload) const {
    inner_.Send(round, x, state, context, payload);
  }
  Status Receive(int round, const Inbox& inbox, State& state, const Context& context,
                 Out average) const {
    return inner_.Receive(round, inbox, state, context, average);
  }
  Status SubtractSent(const PayloadView& own, State& state, const Context& context, Out y) const {
    return inner_.SubtractSent(own, state, context, y);
  }

 private:
  Compressor inner_;
};

// Gradients of several magnitudes, among them sums that overflow and values that vanish.
std::vector<Values> Steps(std::size_t n) {
  std::vector<Values> steps;
  for (float scale : {1.0F, 1e-42F, 1e38F}) {
    Values x = RandomValues(n, steps.size());
    for (float& value : x) value = std::isfinite(value * scale) ? value * scale : 3e38F;
    for (int repeat = 0; repeat < kSteps; ++repeat) steps.push_back(x);
  }
  return steps;
}

std::vector<TensorSpec> TensorsOfEveryKind() {
  return Tensors({{0}, {1}, {7}, {64}, {48, 33}, {300, 240}, {40001}});
}

class FusedTest : public ForEverySpec {};

void ExpectFeedbackAgrees(const Compressor& method, const Compressor& reference) {
  for (const TensorSpec& tensor : TensorsOfEveryKind()) {
    SCOPED_TRACE(tensor.numel());
    OneRank fused(Compressor(Fused(method)), tensor);
    OneRank apart(Compressor(StepByStep(reference)), tensor);
    for (const Values& x : Steps(tensor.numel())) {
      const Values average = fused.Step(x);
      EXPECT_TRUE(SameBits(average, apart.Step(x)));
      EXPECT_TRUE(fused.payloads() == apart.payloads());
      EXPECT_EQ(fused.context().counters->saturated, apart.context().counters->saturated);
      EXPECT_TRUE(SameBits(FieldOf(fused.state(), "residual"), FieldOf(apart.state(), "residual")));
    }
    EXPECT_EQ(FieldsOf(fused.state()), FieldsOf(apart.state()));
  }
}

TEST_P(FusedTest, FeedbackIsThatOfTheSeparateSteps) {
  if (HasErrorFeedback(spec())) return;  // takes none around it
  ExpectFeedbackAgrees(Make(spec()), Make(spec()));
}

TEST_P(FusedTest, FeedbackWithoutAFormOfItsOwnIsThatOfTheSeparateSteps) {
  if (HasErrorFeedback(spec())) return;
  ExpectFeedbackAgrees(Compressor(Plain(Make(spec()))), Make(spec()));
}

TEST_P(FusedTest, DecodingOverwritesAsAddingToZerosDoes) {
  const Compressor compressor = Make(spec());
  if (!compressor.codec()) return;
  for (const TensorSpec& tensor : TensorsOfEveryKind()) {
    SCOPED_TRACE(tensor.numel());
    OneRank rank(compressor, tensor);
    for (const Values& x : Steps(tensor.numel())) {
      Buffer<std::byte> body(rank.plan().rounds[0].kind == Round::Kind::kGather
                                 ? rank.plan().rounds[0].bound
                                 : SectionBytesOf<float>(x.size()));
      Payload payload(body.span());
      compressor.codec()->Encode(x, rank.context(), payload);
      for (float weight : {1.0F, -0.25F}) {
        Values added(x.size(), 0.0F), overwritten(x.size(), NAN);
        const PayloadView view = payload.view();
        ASSERT_TRUE(compressor.codec()->DecodeAdd(view, rank.context(), weight, added).ok());
        ASSERT_TRUE(compressor.codec()->Decode(view, rank.context(), weight, overwritten).ok());
        EXPECT_TRUE(SameBits(overwritten, added)) << "weight " << weight;
      }
    }
  }
}

SLIMGRAD_FOR_EVERY_SPEC(FusedTest);

}  // namespace
}  // namespace slimgrad::conformance
