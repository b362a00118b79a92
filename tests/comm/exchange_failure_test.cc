// Ranks that do not fit together, and ranks that fail within a step.
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/comm/exchange_fixture.h"
#include "tests/comm/ranks.h"

namespace slimgrad {
namespace {

struct Choices {
  std::string spec = "top_k(k=2)";
  std::vector<TensorSpec> tensors = {{"w", {4}}, {"b", {2}}};
  ExchangeOptions options;
};

// Creates an exchange on each of three ranks, where rank 1's set-up is changed; returns each rank's
// error.
std::vector<Status> ErrorsOf(const std::function<void(Choices&)>& change) {
  auto groups = MakeThreadsGroups(3, kPatience);
  std::vector<Status> errors(3);
  RunThreads(groups, [&](std::unique_ptr<Group>& group) {
    const int rank = group->local_ranks()[0];
    Choices choices;
    if (rank == 1) change(choices);
    errors[static_cast<std::size_t>(rank)] =
        Exchange::Create(*group, MustMake(choices.spec), choices.tensors, choices.options).status();
  });
  return errors;
}

void ExpectMismatch(const std::string& field, const std::function<void(Choices&)>& change) {
  const std::vector<Status> errors = ErrorsOf(change);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(errors[rank].code(), Code::kMismatch) << field;
    // Rank 1 finds that the others differ, the others that it does.
    const std::string begin =
        std::string(rank == 1 ? "rank 0: " : "rank 1: ") + field + ": expected ";
    EXPECT_EQ(errors[rank].message().substr(0, begin.size()), begin) << errors[rank].message();
  }
}

TEST(ExchangeSetUp, AMismatchNamesRankAndFieldOnAllRanks) {
  const std::string tensors = "tensors (names, shapes, dtypes)";
  ExpectMismatch("compressor spec", [](Choices& s) { s.spec = "top_k(k=3)"; });
  ExpectMismatch(tensors, [](Choices& s) { s.tensors[0].name = "v"; });
  ExpectMismatch(tensors, [](Choices& s) { s.tensors[0].shape = {2, 2}; });
  ExpectMismatch(tensors, [](Choices& s) { s.tensors[1].dtype = DType::kF16; });
  ExpectMismatch(tensors, [](Choices& s) { s.tensors.pop_back(); });
  ExpectMismatch(tensors, [](Choices& s) { std::swap(s.tensors[0], s.tensors[1]); });
  ExpectMismatch("seed", [](Choices& s) { s.options.seed = 1; });
  ExpectMismatch("nonfinite rule", [](Choices& s) { s.options.nonfinite = NonFinite::kTrusted; });
}

TEST(ExchangeSetUp, SpellingsOfOneSpecAreOne) {
  for (const Status& status : ErrorsOf([](Choices& s) { s.spec = " top_k( k = 2 ) "; }))
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ExchangeSetUp, RefusesWhatCannotBe) {
  LockStepGroup group(2);
  const auto error = [&](std::vector<TensorSpec> tensors, ExchangeOptions options) {
    return Exchange::Create(group, MustMake("none"), std::move(tensors), std::move(options))
        .status();
  };
  EXPECT_EQ(error({{"w", {2}}, {"w", {3}}}, {}).message(),
            "tensors: expected each name once, found 'w' twice");
  EXPECT_EQ(error({{"w", {-2}}}, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(error({{"w", {2}, DType::kI32}}, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(error({}, {.backend = {.device = Device::kCuda}}).code(), Code::kUnsupported);
  Compressor nameless = MustMake("none");
  nameless.set_spec("");
  EXPECT_EQ(Exchange::Create(group, nameless, {}, {}).status().message(),
            "compressor: expected a spec, as MakeCompressor sets it, found none");
}

// One rank has done a step more than the other.
std::vector<Status> StepErrors(NonFinite nonfinite) {
  const std::vector<TensorSpec> tensors = {{"w", {8}}};
  std::vector<std::byte> file;
  {
    LockStepGroup group(2);
    auto exchange = MustCreate(group, "top_k(k=2)", tensors, {.nonfinite = nonfinite});
    Worker worker(group, tensors);
    EXPECT_TRUE(worker.FillAndRun(*exchange).ok());
    file = *exchange->SaveState(1);
  }
  auto groups = MakeThreadsGroups(2, kPatience);
  std::vector<Status> errors(2);
  RunThreads(groups, [&](std::unique_ptr<Group>& group) {
    const int rank = group->local_ranks()[0];
    auto exchange = MustCreate(*group, "top_k(k=2)", tensors, {.nonfinite = nonfinite});
    Worker worker(*group, tensors);
    if (rank == 1) {
      EXPECT_TRUE(exchange->RestoreState(0, file).ok());
    }
    errors[static_cast<std::size_t>(rank)] = worker.FillAndRun(*exchange);
  });
  return errors;
}

TEST(ExchangeStep, RanksInDifferentStepsAreNamed) {
  const auto checked = StepErrors(NonFinite::kSkip);
  EXPECT_EQ(checked[0].message(), "rank 1: step: expected 0 as on rank 0, found 1");
  EXPECT_EQ(checked[1].message(), "rank 0: step: expected 1 as on rank 1, found 0");
  const auto trusted = StepErrors(NonFinite::kTrusted);
  for (const auto* errors : {&checked, &trusted})
    for (const Status& status : *errors) EXPECT_EQ(status.code(), Code::kMismatch);
}

TEST(ExchangeStep, ARankThatRefusesItsViewsIsMissedNotWaitedForForever) {
  const std::vector<TensorSpec> tensors = {{"w", {8}}};
  auto groups = MakeThreadsGroups(2, std::chrono::hours(1));
  std::vector<Status> errors(2);
  RunThreads(groups, [&](std::unique_ptr<Group>& group) {
    const int rank = group->local_ranks()[0];
    auto exchange = MustCreate(*group, "top_k(k=2)", tensors);
    Worker worker(*group, tensors);
    if (rank == 0) {
      errors[0] = worker.FillAndRun(*exchange);
    } else {
      errors[1] = exchange->Step({}, worker.average_rows(), {});
      exchange.reset();
      group.reset();
    }
  });
  EXPECT_EQ(errors[0].message(), "rank 1 has left the group");
  EXPECT_EQ(errors[1].code(), Code::kInvalidArgument);
}

// A group whose wire can be damaged: flips a bit of one rank's gathered message, or loses a peer in
// a combined round.
class FaultyGroup final : public Group {
 public:
  explicit FaultyGroup(int size) : inner_(size) {}
  int flip_rank = -1;
  std::size_t flip_byte = 0;
  int combines_left = -1;  // -1: all work

  int size() const override { return inner_.size(); }
  std::span<const int> local_ranks() const override { return inner_.local_ranks(); }
  Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                           TrafficRow& traffic) override {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const Bytes> all, inner_.AllGather(mine, traffic));
    if (flip_rank < 0) return all;
    views_.assign(all.begin(), all.end());
    const Bytes message = views_[static_cast<std::size_t>(flip_rank)];
    damaged_ = Buffer<std::byte>(message.size());
    std::memcpy(damaged_.data(), message.data(), message.size());
    damaged_.span()[flip_byte] ^= std::byte{4};
    views_[static_cast<std::size_t>(flip_rank)] = damaged_.span();
    return std::span<const Bytes>(views_);
  }
  Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                    std::span<std::byte> result, TrafficRow& traffic) override {
    if (combines_left == 0) return PeerLost("rank 1 did not come within 5 ms");
    if (combines_left > 0) --combines_left;
    return inner_.AllCombine(op, dtype, mine, result, traffic);
  }

 private:
  LockStepGroup inner_;
  std::vector<Bytes> views_;
  Buffer<std::byte> damaged_;
};

TEST(ExchangeFailure, ADamagedFrameIsRefusedAndWhatWasNotSentIsKept) {
  const std::vector<TensorSpec> tensors = {{"w", {5}}};
  const std::size_t frame = 48 + 32 + 32;
  for (std::size_t at = 0; at < frame; ++at) {
    FaultyGroup group(2);
    auto exchange = MustCreate(group, "error_feedback(top_k(k=2))", tensors,
                               {.nonfinite = NonFinite::kTrusted});
    Worker worker(group, tensors);
    ASSERT_TRUE(worker.Run(*exchange).ok());  // zeros: the next gather is the frames'
    worker.gradient(0, 0) = {1, -5, 2, 4, 3};
    worker.gradient(1, 0) = {7, 0, 0, -6, 1};
    group.flip_rank = 1;
    group.flip_byte = at;
    const Status status = worker.Run(*exchange);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    const std::string begin = "tensor 'w', round 0: rank 1: frame ";
    EXPECT_EQ(status.message().substr(0, begin.size()), begin) << status.message();
    EXPECT_EQ(Residual(*exchange, 0, 0), (std::vector<float>{1, 0, 2, 0, 3}));
    EXPECT_EQ(Residual(*exchange, 1, 0), (std::vector<float>{0, 0, 0, 0, 1}));
    EXPECT_EQ(exchange->next_step(), 1U);
  }
}

// The host's memory, which runs out.
class SmallMemory final : public Memory {
 public:
  int left = 1 << 30;  // allocations

  Device device() const override { return Device::kCpu; }
  void* Allocate(std::size_t bytes) override {
    if (left-- <= 0) throw std::bad_alloc();
    return HostMemory().Allocate(bytes);
  }
  void Free(void* memory, std::size_t bytes) noexcept override { HostMemory().Free(memory, bytes); }
  void Read(void* host, const void* from, std::size_t bytes) override {
    HostMemory().Read(host, from, bytes);
  }
  void Write(void* to, const void* host, std::size_t bytes) override {
    HostMemory().Write(to, host, bytes);
  }
};

// Set-up, and the first steps, which take their scratch, with each number of allocations until all
// succeed.
TEST(ExchangeFailure, MemoryThatRunsOutIsAnError) {
  const std::vector<TensorSpec> tensors = {{"w", {40, 50}}, {"b", {700}}};
  for (const char* spec : {"error_feedback(top_k(ratio=0.1))", "power_sgd(rank=2)", "int8"}) {
    bool enough = false;
    for (int allocations = 0; !enough; ++allocations) {
      ASSERT_LT(allocations, 1000);
      SmallMemory memory;
      LockStepGroup group(2);
      memory.left = allocations;
      auto exchange =
          Exchange::Create(group, MustMake(spec), tensors, {.backend = {.memory = &memory}});
      if (!exchange.ok()) {
        EXPECT_EQ(exchange.status().code(), Code::kOutOfMemory);
        continue;
      }
      Worker worker(group, tensors);
      const Status status = worker.FillAndRun(**exchange);
      enough = status.ok();
      if (!enough) {
        EXPECT_EQ(status.code(), Code::kOutOfMemory);
        EXPECT_EQ(status.message(), "step: expected room, found too little memory");
        EXPECT_EQ((*exchange)->next_step(), 0U);
      }
    }
  }
}

TEST(ExchangeFailure, ALostRoundKeepsTheWholeGradient) {
  const std::vector<TensorSpec> tensors = {{"w", {6, 6}}};
  for (const int round : {0, 1}) {
    FaultyGroup group(2);
    auto exchange = MustCreate(group, "error_feedback(power_sgd(rank=1))", tensors);
    Worker worker(group, tensors);
    group.combines_left = round;
    const Status status = worker.FillAndRun(*exchange);
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_EQ(status.message(),
              "tensor 'w', round " + std::to_string(round) + ": rank 1 did not come within 5 ms");
    for (std::size_t l = 0; l < 2; ++l)
      EXPECT_TRUE(SameBits(Residual(*exchange, l, 0), worker.gradient(l, 0)));
  }
}

}  // namespace
}  // namespace slimgrad
