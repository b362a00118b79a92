// The exchange over every kind of group: same averages, same counts, same refusals.
#include "comm/exchange.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/comm/exchange_fixture.h"
#include "tests/comm/ranks.h"

namespace slimgrad {
namespace {

const std::vector<TensorSpec> kTensors = {
    {"w", {9, 11}}, {"b", {11}}, {"scalar", {}}, {"none", {0}}};

// Every registered method, and a few nests.
std::vector<std::string> Specs() {
  std::vector<std::string> specs = {"error_feedback(power_sgd(rank=1))",
                                    "error_feedback(top_k(ratio=0.1)|delta_index|fp16_values)",
                                    "small_tensors(int8,below=50,use=error_feedback(fp16))"};
  for (const Method* method : Methods()) specs.push_back(method->example);
  return specs;
}

// What a run leaves behind, by rank.
struct Outcome {
  explicit Outcome(int world)
      : averages(static_cast<std::size_t>(world)), states(averages.size()), traffic(world) {}
  std::mutex mutex;
  std::vector<std::vector<std::vector<float>>> averages;
  std::vector<std::string> states;
  Traffic traffic;
  std::uint64_t payload_bytes = 0, saturated = 0;
};

void RunSteps(Group& group, const std::string& spec, int steps, Outcome& outcome) {
  auto exchange = MustCreate(group, spec, kTensors, {.seed = 3});
  ASSERT_NE(exchange, nullptr);
  Worker worker(group, kTensors);
  for (int step = 0; step < steps; ++step) {
    const Status status = worker.FillAndRun(*exchange);
    ASSERT_TRUE(status.ok()) << spec << ": " << status.message();
    const std::lock_guard lock(outcome.mutex);
    outcome.traffic += exchange->report().traffic;
    outcome.payload_bytes += exchange->report().payload_bytes;
    outcome.saturated += exchange->report().saturated;
  }
  const std::lock_guard lock(outcome.mutex);
  for (std::size_t l = 0; l < worker.ranks().size(); ++l) {
    const auto rank = static_cast<std::size_t>(worker.ranks()[l]);
    outcome.averages[rank] = worker.averages(l);
    outcome.states[rank] = StateBits(*exchange, l);
  }
}

TEST(Exchange, IsTheSameInEveryGroupAndOnEveryRank) {
  for (const std::string& spec : Specs())
    for (const int world : {1, 2, 3, 5}) {
      SCOPED_TRACE(spec);
      Outcome lock_step(world), threads(world);
      RunRanks(Kind::kLockStep, world, [&](Group& g) { RunSteps(g, spec, 3, lock_step); });
      RunRanks(Kind::kThreads, world, [&](Group& g) { RunSteps(g, spec, 3, threads); });
      EXPECT_EQ(lock_step.states, threads.states);
      for (std::size_t r = 0; r < lock_step.averages.size(); ++r)
        for (std::size_t t = 0; t < kTensors.size(); ++t) {
          EXPECT_TRUE(SameBits(lock_step.averages[r][t], lock_step.averages[0][t]));
          EXPECT_TRUE(SameBits(lock_step.averages[r][t], threads.averages[r][t]));
        }
      EXPECT_EQ(lock_step.payload_bytes, threads.payload_bytes);
      EXPECT_EQ(lock_step.saturated, threads.saturated);
      ASSERT_EQ(lock_step.traffic.rounds.size(), threads.traffic.rounds.size());
      for (std::size_t r = 0; r < lock_step.traffic.rounds.size(); ++r) {
        EXPECT_EQ(lock_step.traffic.rounds[r].sent, threads.traffic.rounds[r].sent);
        EXPECT_EQ(lock_step.traffic.rounds[r].received, threads.traffic.rounds[r].received);
      }
      EXPECT_EQ(lock_step.traffic.finite_check.sent, threads.traffic.finite_check.sent);
      EXPECT_EQ(lock_step.traffic.Total().SentByAll(), lock_step.traffic.Total().ReceivedByAll());
    }
}

TEST(Exchange, NoneIsTheMeanAndMovesARingsBytes) {
  for (const int world : {1, 2, 3, 4, 7}) {
    LockStepGroup group(world);
    auto exchange = MustCreate(group, "none", kTensors);
    Worker worker(group, kTensors);
    ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
    for (std::size_t t = 0; t < kTensors.size(); ++t)
      for (std::size_t i = 0; i < kTensors[t].numel(); ++i) {
        float sum = 0;
        for (int r = 0; r < world; ++r) sum += ValueOf(r, t, 0, i);
        EXPECT_EQ(worker.average(0, t)[i], sum / static_cast<float>(world));
      }
    const StepReport& report = exchange->report();
    const auto n = static_cast<std::uint64_t>(world);
    const std::uint64_t parameters = 99 + 11 + 1;
    EXPECT_EQ(report.payload_bytes, n * parameters * 4);
    ASSERT_EQ(report.traffic.rounds.size(), 1U);
    EXPECT_EQ(report.traffic.rounds[0].SentByAll(), 2 * (n - 1) * parameters * 4);
    EXPECT_EQ(report.traffic.finite_check.SentByAll(), n * (n - 1) * 16);
  }
}

TEST(Exchange, CountsFramesHeadersAndRounds) {
  LockStepGroup group(3);
  const std::vector<TensorSpec> tensors = {{"w", {10, 10}}};
  Worker worker(group, tensors);
  {
    auto exchange = MustCreate(group, "top_k(k=5)", tensors);
    ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
    const std::uint64_t frame = 48 + (16 + 32) + (16 + 32);  // 20 bytes each, padded to 32
    EXPECT_EQ(exchange->report().payload_bytes, 3 * frame);
    EXPECT_EQ(exchange->report().traffic.rounds[0].sent,
              (std::vector<std::uint64_t>(3, 2 * frame)));
  }
  auto exchange =
      MustCreate(group, "power_sgd(rank=2)", tensors, {.nonfinite = NonFinite::kTrusted});
  ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
  EXPECT_EQ(exchange->report().traffic.finite_check.SentByAll(), 3 * 2 * 16U);  // once: the step
  ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
  EXPECT_EQ(exchange->report().payload_bytes, 3 * 2 * (10 * 2 * 4));
  ASSERT_EQ(exchange->report().traffic.rounds.size(), 2U);
  for (const TrafficRow& row : exchange->report().traffic.rounds)
    EXPECT_EQ(row.SentByAll(), 2 * 2 * (10 * 2 * 4U));
  EXPECT_EQ(exchange->report().traffic.finite_check.SentByAll(), 0U);
}

TEST(Exchange, CountsWhatSaturates) {
  LockStepGroup group(2);
  const std::vector<TensorSpec> tensors = {{"w", {4}}};
  Worker worker(group, tensors);
  auto exchange = MustCreate(group, "fp16", tensors);
  worker.gradient(0, 0) = {1e6F, -1e6F, 1, 2};
  worker.gradient(1, 0) = {1e6F, 0, 1, 2};
  ASSERT_TRUE(worker.Run(*exchange).ok());
  EXPECT_EQ(exchange->report().saturated, 3U);
  EXPECT_EQ(worker.average(1, 0), (std::vector<float>{65504, -32752, 1, 2}));
  worker.gradient(0, 0) = worker.gradient(1, 0) = {1, 2, 3, 4};
  ASSERT_TRUE(worker.Run(*exchange).ok());
  EXPECT_EQ(exchange->report().saturated, 0U);
}

TEST(Exchange, ReadsTheCallersClock) {
  LockStepGroup group(2);
  Worker worker(group, kTensors);
  std::uint64_t now = 0;
  auto exchange = MustCreate(group, "int8", kTensors, {.clock_ns = [&] { return now += 10; }});
  ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
  EXPECT_EQ(exchange->report().encode_ns, 10U * kTensors.size());
  EXPECT_EQ(exchange->report().decode_ns, 20U * kTensors.size());  // opening, and Receive
}

TEST(Exchange, SixteenBitGradientsAreWidenedAndRoundedOnce) {
  for (const Kind kind : kKinds)
    RunRanks(kind, 2, [](Group& group) {
      const std::vector<TensorSpec> tensors = {
          {"h", {2}, DType::kF16}, {"b", {2}, DType::kBF16}, {"f", {2}}};
      auto exchange = MustCreate(group, "none", tensors);
      ASSERT_NE(exchange, nullptr);
      // fp16 40000 and 1; bf16 1 and 3 on rank 0, 2 and 3 on rank 1.
      std::vector<half_bits> h = {half_bits{0x78e2}, half_bits{0x3c00}}, h_mean(2);
      std::vector<bfloat16_bits> b[2] = {{bfloat16_bits{0x3f80}, bfloat16_bits{0x4040}},
                                         {bfloat16_bits{0x4000}, bfloat16_bits{0x4040}}};
      std::vector<bfloat16_bits> b_mean(2);
      std::vector<float> f = {0.1F, 0.2F}, f_mean(2);
      std::vector<std::vector<ConstView>> gradients;
      for (const int rank : group.local_ranks())
        gradients.push_back({{h.data(), 2, DType::kF16, Device::kCpu},
                             {b[rank].data(), 2, DType::kBF16, Device::kCpu},
                             In(f)});
      const std::vector<View> averages = {{h_mean.data(), 2, DType::kF16, Device::kCpu},
                                          {b_mean.data(), 2, DType::kBF16, Device::kCpu},
                                          Out(f_mean)};
      const std::vector<std::span<const ConstView>> rows(gradients.begin(), gradients.end());
      const std::span<const View> one_row = averages;
      const Status status = exchange->Step(rows, {&one_row, 1}, {});
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(h_mean, h);  // 40000 + 40000 overflows fp16, the mean does not
      EXPECT_EQ(b_mean, (std::vector<bfloat16_bits>{bfloat16_bits{0x3fc0}, bfloat16_bits{0x4040}}));
      EXPECT_EQ(f_mean, f);
    });
}

TEST(Exchange, OneRowOfAveragesIsEnough) {
  for (const std::string& spec : Specs()) {
    LockStepGroup group(3);
    auto all = MustCreate(group, spec, kTensors), first = MustCreate(group, spec, kTensors);
    Worker a(group, kTensors), b(group, kTensors);
    for (int step = 0; step < 3; ++step) {
      a.Fill(all->next_step());
      b.Fill(first->next_step());
      ASSERT_TRUE(a.Run(*all).ok());
      ASSERT_TRUE(first->Step(b.gradient_rows(), b.average_rows().first(1), {}).ok());
    }
    EXPECT_TRUE(SameBits(a.average(0, 0), b.average(0, 0))) << spec;
    EXPECT_EQ(b.average(1, 0), std::vector<float>(99, -99.0F));  // not written
    for (std::size_t l = 0; l < 3; ++l) EXPECT_EQ(StateBits(*all, l), StateBits(*first, l)) << spec;
  }
}

TEST(Exchange, OfNoTensorsIsAStep) {
  for (const Kind kind : kKinds)
    RunRanks(kind, 2, [](Group& group) {
      auto exchange = MustCreate(group, "one_bit", {});
      Worker worker(group, {});
      ASSERT_TRUE(worker.Run(*exchange).ok());
      EXPECT_EQ(exchange->next_step(), 1U);
      EXPECT_EQ(exchange->report().payload_bytes, 0U);
    });
}

TEST(ExchangeNonFinite, SkipsTheStepOnAllRanks) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const float bad : {nan, inf, -inf})
    for (const Kind kind : kKinds)
      RunRanks(kind, 3, [&](Group& group) {
        auto exchange = MustCreate(group, "error_feedback(power_sgd)", kTensors);
        Worker worker(group, kTensors);
        ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
        std::vector<std::string> states;
        std::vector<std::vector<std::vector<float>>> averages;
        for (std::size_t l = 0; l < worker.ranks().size(); ++l) {
          states.push_back(StateBits(*exchange, l));
          averages.push_back(worker.averages(l));
        }
        worker.Fill(1);
        for (std::size_t l = 0; l < worker.ranks().size(); ++l)
          if (worker.ranks()[l] == 1) worker.gradient(l, 1)[10] = bad;
        ASSERT_TRUE(worker.Run(*exchange).ok());
        const StepReport& report = exchange->report();
        EXPECT_TRUE(report.skipped);
        EXPECT_EQ(report.skip_reason, "rank 1: gradient of tensor 'b' is not finite");
        EXPECT_EQ(report.step, 1U);
        EXPECT_EQ(exchange->next_step(), 2U);
        EXPECT_EQ(report.payload_bytes, 0U);
        for (const TrafficRow& row : report.traffic.rounds) EXPECT_EQ(row.SentByAll(), 0U);
        for (std::size_t l = 0; l < worker.ranks().size(); ++l) {
          EXPECT_EQ(StateBits(*exchange, l), states[l]);
          for (std::size_t t = 0; t < kTensors.size(); ++t)
            EXPECT_TRUE(SameBits(worker.average(l, t), averages[l][t]));
        }
        ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
        EXPECT_FALSE(exchange->report().skipped);
        EXPECT_TRUE(exchange->report().skip_reason.empty());
      });
}

TEST(ExchangeNonFinite, TrustedReadsNothing) {
  LockStepGroup group(2);
  auto exchange = MustCreate(group, "none", kTensors, {.nonfinite = NonFinite::kTrusted});
  Worker worker(group, kTensors);
  worker.Fill(0);
  worker.gradient(1, 0)[0] = std::nanf("");
  ASSERT_TRUE(worker.Run(*exchange).ok());
  EXPECT_FALSE(exchange->report().skipped);
  EXPECT_TRUE(std::isnan(worker.average(0, 0)[0]));
}

class ExchangeViews : public testing::Test {
 protected:
  // Runs a step with the views as `change` leaves them, and returns its error.
  std::string ErrorOf(
      const std::function<void(std::vector<ConstView>&, std::vector<View>&)>& change) {
    worker_.Fill(0);
    std::vector<ConstView> gradients(worker_.gradient_rows()[1].begin(),
                                     worker_.gradient_rows()[1].end());
    std::vector<View> averages(worker_.average_rows()[1].begin(), worker_.average_rows()[1].end());
    change(gradients, averages);
    const std::span<const ConstView> gradient_rows[] = {worker_.gradient_rows()[0], gradients};
    const std::span<const View> average_rows[] = {worker_.average_rows()[0], averages};
    return Check(exchange_->Step(gradient_rows, average_rows, {}));
  }
  std::string Check(const Status& status) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(exchange_->next_step(), 0U);
    for (const float residual : Residual(*exchange_, 0, 0)) EXPECT_EQ(residual, 0);
    return status.message();
  }

  LockStepGroup group_{2};
  std::unique_ptr<Exchange> exchange_ = MustCreate(group_, "error_feedback(top_k)", kTensors);
  Worker worker_{group_, kTensors};
};

TEST_F(ExchangeViews, AreRefusedByName) {
  EXPECT_EQ(ErrorOf([](auto& g, auto&) { g[1].dtype = DType::kF16; }),
            "gradient of tensor 'b': dtype: expected F32, found F16");
  EXPECT_EQ(ErrorOf([](auto& g, auto&) { g[1].numel = 10; }),
            "gradient of tensor 'b': elements: expected 11, found 10");
  EXPECT_EQ(ErrorOf([](auto& g, auto&) { g[0].device = Device::kCuda; }),
            "gradient of tensor 'w': memory: expected host, found CUDA device");
  EXPECT_EQ(ErrorOf([](auto& g, auto&) { g.pop_back(); }), "gradients: expected 4, found 3");
  EXPECT_EQ(ErrorOf([](auto&, auto& a) { a[0].dtype = DType::kBF16; }),
            "average of tensor 'w': dtype: expected F32, found BF16");
  EXPECT_EQ(ErrorOf([](auto&, auto& a) { a[2].numel = 2; }),
            "average of tensor 'scalar': elements: expected 1, found 2");
  EXPECT_EQ(ErrorOf([](auto&, auto& a) { a.clear(); }), "averages: expected 4, found 0");
}

TEST_F(ExchangeViews, RowsAreCounted) {
  const auto gradients = worker_.gradient_rows();
  const auto averages = worker_.average_rows();
  EXPECT_EQ(Check(exchange_->Step(gradients.first(1), averages, {})),
            "rows of gradients: expected 2, found 1");
  EXPECT_EQ(Check(exchange_->Step(gradients, averages.first(0), {})),
            "rows of averages: expected 2, found 0");
}

TEST(ExchangeState, GoesOnBitForBitAfterARestore) {
  for (const std::string& spec : Specs()) {
    LockStepGroup group(2);
    auto whole = MustCreate(group, spec, kTensors, {.seed = 8});
    Worker a(group, kTensors), b(group, kTensors);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(a.FillAndRun(*whole).ok());
    auto resumed = MustCreate(group, spec, kTensors, {.seed = 8});
    for (std::size_t l = 0; l < 2; ++l) {
      const auto file = whole->SaveState(l);
      ASSERT_TRUE(file.ok()) << file.status().message();
      ASSERT_TRUE(resumed->RestoreState(l, *file).ok());
    }
    EXPECT_EQ(resumed->next_step(), 3U);
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(a.FillAndRun(*whole).ok());
      ASSERT_TRUE(b.FillAndRun(*resumed).ok());
    }
    for (std::size_t t = 0; t < kTensors.size(); ++t)
      EXPECT_TRUE(SameBits(a.average(0, t), b.average(0, t))) << spec;
    for (std::size_t l = 0; l < 2; ++l) EXPECT_EQ(StateBits(*whole, l), StateBits(*resumed, l));
  }
}

TEST(ExchangeState, ARanksFileIsNotAnothers) {
  LockStepGroup group(2);
  auto exchange = MustCreate(group, "error_feedback(one_bit)", kTensors);
  Worker worker(group, kTensors);
  ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
  const auto file = exchange->SaveState(0);
  const std::string before = StateBits(*exchange, 1);
  const Status status = exchange->RestoreState(1, *file);
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(status.message(), "state: rank: expected 1, found 0");
  EXPECT_EQ(StateBits(*exchange, 1), before);
  EXPECT_EQ(exchange->next_step(), 1U);
  EXPECT_TRUE(worker.FillAndRun(*exchange).ok());  // as if nothing had happened
}

TEST(ExchangeState, LocalRanksOfDifferentStepsAreRefused) {
  LockStepGroup group(2);
  auto exchange = MustCreate(group, "error_feedback(one_bit)", kTensors);
  Worker worker(group, kTensors);
  ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
  const auto early = exchange->SaveState(1);
  ASSERT_TRUE(worker.FillAndRun(*exchange).ok());
  ASSERT_TRUE(exchange->RestoreState(1, *early).ok());
  const Status status = worker.Run(*exchange);
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(status.message(), "restored states: expected step 2 as on rank 0, found 1 on rank 1");
}

}  // namespace
}  // namespace slimgrad
