#include "sim/replay.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compressors/api/registry.h"
#include "core/version.h"
#include "kernels/simd.h"
#include "kernels/sums.h"
#include "sim/replay_run.h"

namespace slimgrad::sim {
namespace {

constexpr double kBitsAByte = 8;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// |w - base| / |base|, 2-norms over all tensors; |w - base| where the base is zero.
double WeightDistance(const Backend& backend, std::span<const In> weights,
                      std::span<const In> base) {
  double difference = 0, norm = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    difference += kernels::SumSquaredDifferences(backend, weights[t], base[t]);
    norm += kernels::SumSquares(backend, base[t]);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

std::vector<std::string> AlgorithmsOf(std::span<const Plan> plans) {
  std::set<std::string> names;
  for (const Plan& plan : plans)
    for (const Round& round : plan.rounds)
      names.insert(round.kind == Round::Kind::kGather ? "all_gather" : "reduce_scatter_all_gather");
  return {names.begin(), names.end()};
}

class Replayer {
 public:
  Replayer(const Trace& trace, const ReplayOptions& options)
      : trace_(trace), options_(options), steps_(options.steps.value_or(trace.schema().steps)) {}

  Result<ReplayResult> Go(const std::vector<ReplaySpec>& specs) {
    SLIMGRAD_RETURN_IF_ERROR(Prepare());
    const std::int64_t loops = (open_ != nullptr) + (closed_ != nullptr);
    total_ = loops * steps_ * static_cast<std::int64_t>(specs.size());
    for (const ReplaySpec& spec : specs) SLIMGRAD_RETURN_IF_ERROR(RunSpec(spec));
    Describe();
    return std::move(result_);
  }

 private:
  Status Prepare();
  Status RunSpec(const ReplaySpec& spec);
  Outcome OutcomeOf(const RunResult& run, const std::optional<TensorSet>& base, bool baseline);
  void FillTraffic(const RunResult& run, Row& row) const;
  void FillDense(const RunResult& run, Row& row) const;
  void AddTiming(const RunResult& run, RowTiming& timing, std::int64_t* timed_steps) const;
  void Describe();
  void NoteRecordedWeights(std::string_view loop, const std::optional<TensorSet>& weights);

  const Trace& trace_;
  const ReplayOptions& options_;
  const std::int64_t steps_;
  std::unique_ptr<GradientSource> open_, closed_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<TensorSet> open_base_, closed_base_;  // final weights of `none`, the first spec
  std::int64_t done_ = 0, total_ = 0;
  ReplayResult result_;
};

Status Replayer::Prepare() {
  if (steps_ < 1 || steps_ > trace_.schema().steps)
    return InvalidArgument(fmt::format("steps: expected 1 to {}, which the trace has, found {}",
                                       trace_.schema().steps, steps_));
  Report& report = result_.report;
  report.world_size = trace_.schema().world_size;
  report.parameters = trace_.schema().parameters();
  if (options_.open_loop) open_ = RecordedGradients(trace_, options_.backend);
  if (options_.closed_loop) {
    auto closed = ModelGradients(trace_);
    if (closed.ok())
      closed_ = std::move(*closed);
    else if (options_.require_closed_loop)
      return closed.status().In("closed loop");
    else
      report.notes.push_back(fmt::format("No closed loop: {}.", closed.status().message()));
  }
  if (!open_ && !closed_)
    return InvalidArgument("loops: expected open or closed or both, found neither");
  report.measured_in = open_ ? Loop::kOpen : Loop::kClosed;
  if (auto evaluator = Evaluator::Create(trace_); evaluator.ok())
    evaluator_ = std::move(*evaluator);
  else
    report.notes.push_back(fmt::format("No accuracy: {}.", evaluator.status().message()));
  return {};
}

Status Replayer::RunSpec(const ReplaySpec& spec) {
  Row row;
  row.spec = spec.compressor.spec();
  row.label = spec.label;
  RowTiming timing;
  timing.spec = row.spec;
  const bool baseline = result_.report.rows.empty();
  const auto tick = [&] {
    if (options_.progress) options_.progress(spec.label, ++done_, total_);
  };
  std::int64_t timed_steps = 0;
  for (const Loop loop : {Loop::kOpen, Loop::kClosed}) {
    GradientSource* source = loop == Loop::kOpen ? open_.get() : closed_.get();
    if (!source) continue;
    Result<RunResult> run = RunLoop(trace_, spec.compressor, *source, steps_, options_, tick);
    if (!run.ok()) {
      // The trace's own faults concern every spec; a compressor's refusal only its row.
      if (run.status().code() != Code::kUnsupported) return run.status();
      row.failure = run.status().message();
      break;
    }
    if (loop == result_.report.measured_in) {
      FillTraffic(*run, row);
      FillDense(*run, row);
      run->errors.Fill(row);
      row.residual_norm_steps = run->residual_norms;
    }
    AddTiming(*run, timing, &timed_steps);
    auto& base = loop == Loop::kOpen ? open_base_ : closed_base_;
    auto& outcome = loop == Loop::kOpen ? row.open_loop : row.closed_loop;
    if (run->weights) outcome = OutcomeOf(*run, base, baseline);
    // Weights of a baseline that ended early are no end to measure distances from.
    if (baseline && run->weights && run->failure.empty()) base = std::move(run->weights);
  }
  result_.report.rows.push_back(std::move(row));
  if (options_.clock_ns) result_.timings.rows.push_back(std::move(timing));
  return {};
}

Outcome Replayer::OutcomeOf(const RunResult& run, const std::optional<TensorSet>& base,
                            bool baseline) {
  Outcome outcome;
  outcome.failure = run.failure;
  outcome.train_loss = run.train_losses;
  if (!outcome.failure.empty()) return outcome;
  const std::span<const In> weights = run.weights->ins();
  if (baseline)
    outcome.weight_distance = 0;
  else if (base)
    outcome.weight_distance = WeightDistance(options_.backend, weights, base->ins());
  if (!evaluator_) return outcome;
  const Evaluation evaluation = evaluator_->Evaluate(weights);
  outcome.eval_loss = evaluation.loss;
  outcome.eval_accuracy = evaluation.accuracy;
  return outcome;
}

void Replayer::FillTraffic(const RunResult& run, Row& row) const {
  row.algorithms = AlgorithmsOf(run.plans);
  row.saturated = static_cast<std::int64_t>(run.saturated);
  row.skipped_steps = run.skipped;
  if (run.steps == 0) return;
  const auto worker_steps = static_cast<double>(run.steps * result_.report.world_size);
  if (result_.report.parameters > 0)
    row.payload_bits = static_cast<double>(run.payload_bytes) * kBitsAByte /
                       (worker_steps * static_cast<double>(result_.report.parameters));
  if (result_.report.world_size == 1) return;
  const TrafficRow total = run.traffic.Total();
  row.sent_bytes = static_cast<double>(total.SentByAll()) / worker_steps;
  row.received_bytes = static_cast<double>(total.ReceivedByAll()) / worker_steps;
}

void Replayer::FillDense(const RunResult& run, Row& row) const {
  std::size_t dense = 0, elements = 0, all = 0;
  std::set<std::string> reasons;
  for (std::size_t t = 0; t < run.plans.size(); ++t) {
    const std::size_t n = trace_.tensors()[t].numel();
    all += n;
    if (run.plans[t].dense_reason.empty()) continue;
    ++dense;
    elements += n;
    reasons.insert(run.plans[t].dense_reason);
  }
  if (dense == 0) return;
  row.dense_fraction = all > 0 ? static_cast<double>(elements) / static_cast<double>(all) : 0;
  row.dense_reason =
      fmt::format("{} of {} tensors: {}", dense, run.plans.size(), fmt::join(reasons, ", "));
}

// Both loops count: throughput is what was encoded and decoded in all.
void Replayer::AddTiming(const RunResult& run, RowTiming& timing, std::int64_t* timed_steps) const {
  constexpr double kNano = 1e-9, kGiga = 1e9;
  *timed_steps += run.steps;
  const double bytes =
      4.0 * static_cast<double>(result_.report.parameters) * static_cast<double>(*timed_steps);
  timing.encode_seconds =
      timing.encode_seconds.value_or(0) + static_cast<double>(run.encode_ns) * kNano;
  timing.decode_seconds =
      timing.decode_seconds.value_or(0) + static_cast<double>(run.decode_ns) * kNano;
  timing.wall_seconds = timing.wall_seconds.value_or(0) + static_cast<double>(run.wall_ns) * kNano;
  if (*timing.encode_seconds > 0)
    timing.encode_gigabytes_per_second =
        bytes * static_cast<double>(result_.report.world_size) / *timing.encode_seconds / kGiga;
  if (*timing.decode_seconds > 0)
    timing.decode_gigabytes_per_second = bytes / *timing.decode_seconds / kGiga;
}

void Replayer::Describe() {
  const TraceSchema& schema = trace_.schema();
  Report& report = result_.report;
  report.provenance = {{"tool", fmt::format("slimgrad {}", kVersion)},
                       {"trace", schema.name},
                       {"model", schema.model ? schema.model->kind : "n/a"},
                       {"optimizer", std::string(NameOf(schema.optimizer.kind))},
                       {"steps", fmt::format("{} of {}", steps_, schema.steps)},
                       {"seed", std::to_string(options_.seed)},
                       {"baseline", "none: dense fp32, averaged in rank order"}};
  if (options_.clock_ns)
    result_.timings.machine = {
        {"threads", std::to_string(options_.backend.executor->concurrency())},
        {"instructions", std::string(kernels::SimdLevel())}};
  NoteRecordedWeights("open", open_base_);
  NoteRecordedWeights("closed", closed_base_);
}

// The replay's own proof: without compression it must end where the recorded run ended.
void Replayer::NoteRecordedWeights(std::string_view loop, const std::optional<TensorSet>& weights) {
  if (!weights || trace_.final_weights().empty() || steps_ != trace_.schema().steps) return;
  result_.report.notes.push_back(
      fmt::format("Check: in the {} loop, `none` ends at a relative distance of {:.1e} from the "
                  "recorded final weights.",
                  loop, WeightDistance(options_.backend, weights->ins(), trace_.final_weights())));
}

}  // namespace

Result<std::vector<ReplaySpec>> ParseReplaySpecs(std::string_view list) {
  std::vector<std::string> labels(std::begin(kBaselines), std::end(kBaselines));
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(';'), list.size());
    if (const std::string_view label = Trimmed(list.substr(0, end)); !label.empty())
      labels.emplace_back(label);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  std::vector<ReplaySpec> specs;
  std::set<std::string> seen;
  for (const std::string& label : labels) {
    SLIMGRAD_ASSIGN_OR_RETURN(Compressor compressor, MakeCompressor(label));
    if (seen.insert(compressor.spec()).second) specs.push_back({label, std::move(compressor)});
  }
  return specs;
}

Result<ReplayResult> Replay(const Trace& trace, const std::vector<ReplaySpec>& specs,
                            const ReplayOptions& options) {
  return Replayer(trace, options).Go(specs);
}

}  // namespace slimgrad::sim
