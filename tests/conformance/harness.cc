#include "tests/conformance/harness.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "comm/threads_group.h"

namespace slimgrad::conformance {
namespace {

struct FieldCollector final : FieldVisitor {
  void Field(const std::string& path, DType dtype, std::span<std::byte> bytes, Memory&) override {
    StateField field = {path, dtype, {bytes.begin(), bytes.end()}, {}};
    if (dtype == DType::kF32) {
      field.values.resize(bytes.size() / sizeof(float));
      if (!bytes.empty()) std::memcpy(field.values.data(), bytes.data(), bytes.size());
    }
    fields.push_back(std::move(field));
  }
  std::vector<StateField> fields;
};

std::vector<ConstView> ViewsOf(const Row& row) {
  std::vector<ConstView> views;
  for (const Values& values : row) views.emplace_back(In(values));
  return views;
}

std::vector<View> ViewsOf(Row& row) {
  std::vector<View> views;
  for (Values& values : row) views.emplace_back(Out(values));
  return views;
}

Row ZerosLike(std::span<const TensorSpec> tensors) {
  Row row;
  for (const TensorSpec& tensor : tensors) row.emplace_back(tensor.numel());
  return row;
}

template <class T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::abort();
  }
  return std::move(result).value();
}

}  // namespace

Compressor Make(std::string_view spec) { return Must(MakeCompressor(spec)); }

std::string TestName(const ::testing::TestParamInfo<Spec>& info) {
  std::string name;
  for (const char* c = info.param.text; *c != '\0'; ++c) {
    const bool plain = std::isalnum(static_cast<unsigned char>(*c)) != 0;
    if (plain) name += *c;
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  while (name.back() == '_') name.pop_back();
  return name;
}

std::vector<TensorSpec> Tensors(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<TensorSpec> tensors;
  for (std::size_t t = 0; t < shapes.size(); ++t)
    tensors.push_back({"t" + std::to_string(t), shapes[t], DType::kF32});
  return tensors;
}

std::vector<TensorSpec> UsualTensors() { return Tensors({{16, 18}, {97}, {3, 3}, {}}); }

Values RandomValues(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15U + n);
  std::normal_distribution<float> normal;
  Values values(n);
  for (float& value : values) {
    value = normal(random);
    if (random() % 16 == 0) value *= 10;
  }
  return values;
}

Gradients RandomGradients(std::span<const TensorSpec> tensors, int world, std::uint64_t seed) {
  Gradients gradients;
  for (int rank = 0; rank < world; ++rank) {
    Row row;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      row.push_back(RandomValues(tensors[t].numel(),
                                 (seed * 131 + static_cast<std::uint64_t>(rank)) * 17 + t + 1));
    gradients.push_back(std::move(row));
  }
  return gradients;
}

WireRounding RoundingOf(const Plan& plan) {
  const Round& last = plan.rounds[plan.rounds.size() - 1];
  if (last.kind == Round::Kind::kGather || last.dtype == DType::kF32) return {};
  // Half a unit in the last place, of normal and of subnormal numbers.
  return last.dtype == DType::kF16 ? WireRounding{0x1p-11, 0x1p-25}
                                   : WireRounding{0x1p-8, 0x1p-134};
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

bool AllFinite(std::span<const float> values) {
  for (float value : values)
    if (!std::isfinite(value)) return false;
  return true;
}

std::vector<StateField> FieldsOf(State& state) {
  FieldCollector collector;
  state.Fields(collector);
  return std::move(collector.fields);
}

Values FieldOf(State& state, std::string_view path) {
  for (StateField& field : FieldsOf(state))
    if (field.path == path) return std::move(field.values);
  return {};
}

Ranks::Ranks(std::string_view spec, int world, std::vector<TensorSpec> tensors,
             ExchangeOptions options)
    : group_(world, options.backend),
      exchange_(Must(Exchange::Create(group_, Make(spec), std::move(tensors), std::move(options)))),
      averages_(static_cast<std::size_t>(world), ZerosLike(exchange_->tensors())) {}

Status Ranks::Step(const Gradients& gradients) {
  std::vector<std::vector<ConstView>> from;
  std::vector<std::vector<View>> to;
  for (const Row& row : gradients) from.push_back(ViewsOf(row));
  for (Row& row : averages_) to.push_back(ViewsOf(row));
  const std::vector<std::span<const ConstView>> from_rows(from.begin(), from.end());
  const std::vector<std::span<const View>> to_rows(to.begin(), to.end());
  return exchange_->Step(from_rows, to_rows, {});
}

void Ranks::MustStep(const Gradients& gradients) {
  const Status status = Step(gradients);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_FALSE(exchange_->report().skipped) << exchange_->report().skip_reason;
}

std::vector<StateField> Ranks::Fields(int rank) {
  std::vector<StateField> all;
  for (std::size_t t = 0; t < exchange_->tensors().size(); ++t)
    for (StateField& field : FieldsOf(exchange_->state(static_cast<std::size_t>(rank), t)))
      all.push_back(std::move(field));
  return all;
}

std::vector<RankLog> RunInLockStep(std::string_view spec, int world,
                                   const std::vector<TensorSpec>& tensors, int steps,
                                   const GradientsOfStep& gradients, ExchangeOptions options) {
  Ranks ranks(spec, world, tensors, std::move(options));
  std::vector<RankLog> runs(static_cast<std::size_t>(world));
  for (int step = 0; step < steps; ++step) {
    ranks.MustStep(gradients(static_cast<std::uint64_t>(step)));
    const StepReport& report = ranks.exchange().report();
    const TrafficRow total = report.traffic.Total();
    for (std::size_t rank = 0; rank < runs.size(); ++rank) {
      runs[rank].averages.push_back(ranks.averages()[rank]);
      runs[rank].sent.push_back(total.sent[rank]);
      runs[rank].received.push_back(total.received[rank]);
      runs[rank].payload_bytes.push_back(report.payload_bytes);
    }
  }
  for (std::size_t rank = 0; rank < runs.size(); ++rank)
    runs[rank].state = Must(ranks.exchange().SaveState(rank));
  return runs;
}

RankLog RunOneRank(Group& group, std::string_view spec, const std::vector<TensorSpec>& tensors,
                   int steps, const GradientsOfStep& gradients, const ExchangeOptions& options) {
  const auto rank = static_cast<std::size_t>(group.local_ranks()[0]);
  const auto exchange = Must(Exchange::Create(group, Make(spec), tensors, options));
  RankLog run;
  for (int step = 0; step < steps; ++step) {
    const Row gradient = gradients(static_cast<std::uint64_t>(step))[rank];
    Row average = ZerosLike(tensors);
    const std::vector<ConstView> from = ViewsOf(gradient);
    const std::vector<View> to = ViewsOf(average);
    const std::vector<std::span<const ConstView>> from_rows = {from};
    const std::vector<std::span<const View>> to_rows = {to};
    const Status status = exchange->Step(from_rows, to_rows, {});
    EXPECT_TRUE(status.ok()) << status.message();
    const TrafficRow total = exchange->report().traffic.Total();
    run.sent.push_back(total.sent[rank]);
    run.received.push_back(total.received[rank]);
    run.payload_bytes.push_back(exchange->report().payload_bytes);
    run.averages.push_back(std::move(average));
  }
  run.state = Must(exchange->SaveState(0));
  return run;
}

std::vector<RankLog> RunAsThreads(std::string_view spec, int world,
                                  const std::vector<TensorSpec>& tensors, int steps,
                                  const GradientsOfStep& gradients, ExchangeOptions options) {
  // Generous: a machine that is short of processors is slow, not broken.
  auto groups = MakeThreadsGroups(world, std::chrono::seconds(60), options.backend);
  std::vector<RankLog> runs(groups.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < groups.size(); ++rank)
    threads.emplace_back([&, rank] {
      runs[rank] = RunOneRank(*groups[rank], spec, tensors, steps, gradients, options);
    });
  threads.clear();  // joins
  return runs;
}

OneRank::OneRank(Compressor compressor, TensorSpec tensor, std::uint32_t rank, std::uint64_t seed,
                 Backend backend)
    : compressor_(std::move(compressor)), tensor_(std::move(tensor)) {
  context_.backend = backend;
  context_.tensor = &tensor_;
  context_.scratch = &scratch_;
  context_.counters = &counters_;
  context_.seed = seed;
  context_.rank = rank;
  plan_ = Must(compressor_.MakePlan(tensor_));
  state_ = compressor_.Init(context_);
}

Values OneRank::Step(In x) {
  Values average(x.size());
  payloads_.clear();
  for (std::size_t r = 0; r < plan_.rounds.size(); ++r) {
    const Round& round = plan_.rounds[r];
    const bool gather = round.kind == Round::Kind::kGather;
    const Buffer<std::byte> memory(gather ? round.bound
                                          : SectionBytes(round.count * SizeOf(round.dtype)));
    Payload payload(memory.span());
    compressor_.Send(static_cast<int>(r), x, state_, context_, payload);
    // What arrives is read from the bytes that were sent, by the parser where there is one.
    const Bytes sent = gather ? payload.body() : payload.view().sections()[0].bytes;
    const PayloadView arrived = gather
                                    ? Must(PayloadView::Parse(sent))
                                    : PayloadView::Single(payload.view().sections()[0].type, sent);
    const Status status = compressor_.Receive(static_cast<int>(r), {{&arrived, 1}, payload.view()},
                                              state_, context_, average);
    EXPECT_TRUE(status.ok()) << status.message();
    payloads_.emplace_back(sent.begin(), sent.end());
  }
  ++context_.step;
  return average;
}

}  // namespace slimgrad::conformance
