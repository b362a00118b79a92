// Every column of a report, with what it means.

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/report/columns.h"

namespace slimgrad::sim::report {
namespace {

Cell From(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

Cell Ratio(double dense, const std::optional<double>& compressed) {
  if (!compressed || *compressed <= 0) return {};
  return dense / *compressed;
}

// What a ring all-reduce of the uncompressed gradient sends a worker a step.
double DenseRingBytes(const Report& report, double bytes_a_value) {
  const auto ranks = static_cast<double>(report.world_size);
  return 2 * (ranks - 1) / ranks * static_cast<double>(report.parameters) * bytes_a_value;
}

Cell FromSpread(const std::optional<Spread>& spread, double Spread::*value) {
  return spread ? Cell((*spread).*value) : Cell();
}

Cell WorstTensor(const std::optional<Spread>& spread) {
  return spread ? Cell(spread->worst_tensor) : Cell();
}

Cell FromOutcome(const std::optional<Outcome>& outcome, std::optional<double> Outcome::*value) {
  return outcome ? From((*outcome).*value) : Cell();
}

Cell FromTiming(const RowTiming* timing, std::optional<double> RowTiming::*value) {
  return timing ? From(timing->*value) : Cell();
}

// Skipped steps are NaN: the last number that is one.
Cell LastFinite(const std::vector<double>& steps) {
  const auto last =
      std::find_if(steps.rbegin(), steps.rend(), [](double value) { return std::isfinite(value); });
  return last == steps.rend() ? Cell() : Cell(*last);
}

std::string LoopFailure(std::string_view loop, const std::optional<Outcome>& outcome) {
  if (!outcome || outcome->failure.empty()) return "";
  return fmt::format("{}: {}", loop, outcome->failure);
}

// Every reason why something is missing from the row.
std::string Failure(const Row& row) {
  std::string all = row.failure;
  for (const std::string& failure :
       {LoopFailure("closed loop", row.closed_loop), LoopFailure("open loop", row.open_loop)}) {
    if (!failure.empty()) all += (all.empty() ? "" : "; ") + failure;
  }
  return all;
}

Cell RowStatus(const Row& row) {
  if (!row.failure.empty()) return "failed";
  return Failure(row).empty() ? "ok" : "ended early";
}

void AddNames(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view heading, std::string_view meaning,
                       Cell (*get)(const Source&)) {
    columns.push_back({name,
                       "",
                       Section::kName,
                       Show::kText,
                       Better::kNeither,
                       Table::kNone,
                       {heading, ""},
                       "",
                       meaning,
                       get});
  };
  add("spec", "compressor",
      "The compressor in canonical form: every parameter written out, so that the text names one "
      "behaviour exactly.",
      [](const Source& s) -> Cell { return s.row.spec; });
  add("label", "as asked for", "The compressor as it was typed.",
      [](const Source& s) -> Cell { return s.row.label; });
  add("algorithms", "collective",
      "How the workers' payloads meet on the network. More than one if tensors differ.",
      [](const Source& s) -> Cell {
        return fmt::format("{}", fmt::join(s.row.algorithms, " + "));
      });
  add("status", "status",
      "ok; failed: no numbers, or not all; ended early: a training loop diverged.",
      [](const Source& s) { return RowStatus(s.row); });
  add("failure", "what failed", "Why numbers are missing.",
      [](const Source& s) -> Cell { return Failure(s.row); });
}

void AddBytes(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view unit, Better better, Table table,
                       std::string_view top, std::string_view bottom, std::string_view shown_unit,
                       std::string_view meaning, Cell (*get)(const Source&)) {
    columns.push_back({name,
                       unit,
                       Section::kSent,
                       Show::kNumber,
                       better,
                       table,
                       {top, bottom},
                       shown_unit,
                       meaning,
                       get});
  };
  add("payload_bits", "bits/parameter", Better::kLess, Table::kBytes, "payload", "a value", "bits",
      "Size of what one worker encodes, headers and indices included, divided by the number of "
      "parameters. Uncompressed fp32 is 32.",
      [](const Source& s) { return From(s.row.payload_bits); });
  add("sent_bytes", "B/worker/step", Better::kLess, Table::kBytes, "sent", "a step", "B",
      "Bytes that a worker sends to other workers a step under the named collective: headers and "
      "all rounds counted; mean over workers and steps.",
      [](const Source& s) { return From(s.row.sent_bytes); });
  add("received_bytes", "B/worker/step", Better::kLess, Table::kBytes, "received", "a step", "B",
      "Bytes that a worker receives from other workers a step. Gathering collectives receive "
      "more the more workers there are.",
      [](const Source& s) { return From(s.row.received_bytes); });
  add("traffic_ratio_32", "ratio", Better::kMore, Table::kBytesIfMoreRanks, "saved", "vs 32b", "x",
      "How many times fewer bytes are sent than by a ring all-reduce of the fp32 gradient. Below "
      "1 the compressor sends more.",
      [](const Source& s) { return Ratio(DenseRingBytes(s.report, 4), s.row.sent_bytes); });
  add("traffic_ratio_16", "ratio", Better::kMore, Table::kBytesIfMoreRanks, "saved", "vs 16b", "x",
      "The same against a 16-bit gradient, which is what most training sends today.",
      [](const Source& s) { return Ratio(DenseRingBytes(s.report, 2), s.row.sent_bytes); });
  add("payload_ratio_32", "ratio", Better::kMore, Table::kBytesIfOneRank, "payload", "vs 32b", "x",
      "32 divided by the bits a parameter: the size of the payload alone, whatever the network "
      "does with it.",
      [](const Source& s) { return Ratio(32, s.row.payload_bits); });
  add("payload_ratio_16", "ratio", Better::kMore, Table::kBytesIfOneRank, "payload", "vs 16b", "x",
      "16 divided by the bits a parameter.",
      [](const Source& s) { return Ratio(16, s.row.payload_bits); });
}

void AddExemptions(std::vector<Column>& columns) {
  columns.push_back({"dense_fraction",
                     "fraction",
                     Section::kSent,
                     Show::kPercent,
                     Better::kNeither,
                     Table::kBytes,
                     {"dense", "part"},
                     "%",
                     "Share of the parameters that went uncompressed, because their tensor is too "
                     "small or of a type that the compressor does not take.",
                     [](const Source& s) -> Cell {
                       if (!s.row.failure.empty() && !s.row.payload_bits) return {};
                       return s.row.dense_fraction;
                     }});
  columns.push_back({"dense_reason",
                     "",
                     Section::kSent,
                     Show::kText,
                     Better::kNeither,
                     Table::kNone,
                     {"why", "uncompressed"},
                     "",
                     "Why some went uncompressed.",
                     [](const Source& s) -> Cell { return s.row.dense_reason; }});
  columns.push_back({"saturated",
                     "values",
                     Section::kSent,
                     Show::kCount,
                     Better::kLess,
                     Table::kNone,
                     {"saturated", ""},
                     "values",
                     "Values too large for the type on the wire, clamped to its largest; over all "
                     "steps and workers.",
                     [](const Source& s) -> Cell { return s.row.saturated; }});
  columns.push_back({"skipped_steps",
                     "steps",
                     Section::kSent,
                     Show::kCount,
                     Better::kLess,
                     Table::kNone,
                     {"skipped", ""},
                     "steps",
                     "Steps left out because a worker's gradient held a NaN or an infinity.",
                     [](const Source& s) -> Cell { return s.row.skipped_steps; }});
}

void AddNmse(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view bottom, std::string_view meaning,
                       Cell (*get)(const Source&)) {
    columns.push_back({name,
                       "ratio",
                       Section::kError,
                       Show::kNumber,
                       Better::kLess,
                       Table::kError,
                       {"NMSE", bottom},
                       "1",
                       meaning,
                       get});
  };
  add("nmse_mean", "mean",
      "Normalised squared error of the averaged gradient of a step: |a' - a|^2 / |a|^2, mean over "
      "the steps. 0 is exact, 1 is as bad as sending nothing. With error feedback a step may "
      "exceed 1: it also delivers what earlier steps held back.",
      [](const Source& s) { return FromSpread(s.row.nmse, &Spread::mean); });
  add("nmse_p50", "p50", "Median over the steps of the same error.",
      [](const Source& s) { return FromSpread(s.row.nmse, &Spread::median); });
  add("nmse_p95", "p95", "95th percentile: one step in twenty is worse.",
      [](const Source& s) { return FromSpread(s.row.nmse, &Spread::tail); });
  add("nmse_worst", "worst", "The same error for the tensor where its mean is largest.",
      [](const Source& s) { return FromSpread(s.row.nmse, &Spread::worst); });
  columns.push_back({"nmse_worst_tensor",
                     "",
                     Section::kError,
                     Show::kText,
                     Better::kNeither,
                     Table::kNone,
                     {"NMSE", "worst tensor"},
                     "",
                     "Which tensor that is.",
                     [](const Source& s) { return WorstTensor(s.row.nmse); }});
}

void AddCosine(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view bottom, Table table,
                       std::string_view meaning, Cell (*get)(const Source&)) {
    columns.push_back({name,
                       "cosine",
                       Section::kError,
                       Show::kNumber,
                       Better::kMore,
                       table,
                       {"cosine", bottom},
                       "1",
                       meaning,
                       get});
  };
  add("cosine_mean", "mean", Table::kError,
      "Cosine of the angle between the averaged gradient and the exact one, mean over the steps. 1 "
      "is the same direction, 0 a right angle.",
      [](const Source& s) { return FromSpread(s.row.cosine, &Spread::mean); });
  add("cosine_p50", "p50", Table::kNone, "Median over the steps.",
      [](const Source& s) { return FromSpread(s.row.cosine, &Spread::median); });
  add("cosine_p05", "p5", Table::kError, "5th percentile: one step in twenty is worse.",
      [](const Source& s) { return FromSpread(s.row.cosine, &Spread::tail); });
  add("cosine_worst", "worst", Table::kNone, "The cosine of the tensor where its mean is smallest.",
      [](const Source& s) { return FromSpread(s.row.cosine, &Spread::worst); });
  columns.push_back({"cosine_worst_tensor",
                     "",
                     Section::kError,
                     Show::kText,
                     Better::kNeither,
                     Table::kNone,
                     {"cosine", "worst tensor"},
                     "",
                     "Which tensor that is.",
                     [](const Source& s) { return WorstTensor(s.row.cosine); }});
  columns.push_back({"residual_norm_last",
                     "gradient norm",
                     Section::kError,
                     Show::kNumber,
                     Better::kLess,
                     Table::kError,
                     {"residual", "at end"},
                     "norm",
                     "What error feedback still holds back after the last step: the 2-norm of the "
                     "residual, mean over workers. n/a without error feedback.",
                     [](const Source& s) { return LastFinite(s.row.residual_norm_steps); }});
}

void AddClosed(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view unit, Show show, Better better,
                       Table table, std::string_view bottom, std::string_view shown_unit,
                       std::string_view meaning, Cell (*get)(const Source&)) {
    columns.push_back({name,
                       unit,
                       Section::kClosed,
                       show,
                       better,
                       table,
                       {"closed", bottom},
                       shown_unit,
                       meaning,
                       get});
  };
  add("closed_eval_accuracy", "fraction", Show::kPercent, Better::kMore, Table::kBytes, "accuracy",
      "%",
      "Share of the evaluation set that the model gets right after training with this compressor: "
      "closed loop, every gradient made anew at the weights that compression led to.",
      [](const Source& s) { return FromOutcome(s.row.closed_loop, &Outcome::eval_accuracy); });
  add("closed_eval_loss", "nats", Show::kNumber, Better::kLess, Table::kEnd, "loss", "nats",
      "Loss on the evaluation set after that training.",
      [](const Source& s) { return FromOutcome(s.row.closed_loop, &Outcome::eval_loss); });
  add("closed_weight_distance", "ratio", Show::kNumber, Better::kLess, Table::kEnd, "distance", "1",
      "How far the final weights are from those of uncompressed training: |w - w0| / |w0|. Far is "
      "not bad in itself: training has many good ends.",
      [](const Source& s) { return FromOutcome(s.row.closed_loop, &Outcome::weight_distance); });
}

void AddOpen(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view unit, Show show, Better better,
                       std::string_view bottom, std::string_view shown_unit,
                       std::string_view meaning, Cell (*get)(const Source&)) {
    columns.push_back({name,
                       unit,
                       Section::kOpen,
                       show,
                       better,
                       Table::kEnd,
                       {"open", bottom},
                       shown_unit,
                       meaning,
                       get});
  };
  add("open_eval_accuracy", "fraction", Show::kPercent, Better::kMore, "accuracy", "%",
      "Accuracy after applying the recorded gradients, compressed, one after the other: open loop. "
      "It flatters error feedback, because the recorded gradients know nothing of its delay. Trust "
      "the closed loop.",
      [](const Source& s) { return FromOutcome(s.row.open_loop, &Outcome::eval_accuracy); });
  add("open_eval_loss", "nats", Show::kNumber, Better::kLess, "loss", "nats",
      "Loss on the evaluation set after the same.",
      [](const Source& s) { return FromOutcome(s.row.open_loop, &Outcome::eval_loss); });
  add("open_weight_distance", "ratio", Show::kNumber, Better::kLess, "distance", "1",
      "How far the final weights are from those that the uncompressed gradients lead to: |w - w0| "
      "/ "
      "|w0|.",
      [](const Source& s) { return FromOutcome(s.row.open_loop, &Outcome::weight_distance); });
}

void AddSpeed(std::vector<Column>& columns) {
  const auto add = [&](std::string_view name, std::string_view unit, Better better, Table table,
                       std::string_view top, std::string_view meaning, Cell (*get)(const Source&)) {
    columns.push_back(
        {name, unit, Section::kSpeed, Show::kNumber, better, table, {top, ""}, unit, meaning, get});
  };
  add("encode_gigabytes_per_second", "GB/s", Better::kMore, Table::kEnd, "encode",
      "Gradient that one worker encodes a second, counted as fp32. Measured on this machine.",
      [](const Source& s) {
        return FromTiming(s.timing, &RowTiming::encode_gigabytes_per_second);
      });
  add("decode_gigabytes_per_second", "GB/s", Better::kMore, Table::kEnd, "decode",
      "Averaged gradient that one worker decodes a second, counted as fp32. Measured likewise.",
      [](const Source& s) {
        return FromTiming(s.timing, &RowTiming::decode_gigabytes_per_second);
      });
  add("encode_seconds", "s", Better::kLess, Table::kNone, "encode, all",
      "Time spent encoding in the whole run, all workers.",
      [](const Source& s) { return FromTiming(s.timing, &RowTiming::encode_seconds); });
  add("decode_seconds", "s", Better::kLess, Table::kNone, "decode, all",
      "Time that one worker spent decoding in the whole run; all do the same.",
      [](const Source& s) { return FromTiming(s.timing, &RowTiming::decode_seconds); });
  add("wall_seconds", "s", Better::kNeither, Table::kNone, "wall",
      "Time that this row of the report took: exchange, optimizer and model, both loops.",
      [](const Source& s) { return FromTiming(s.timing, &RowTiming::wall_seconds); });
}

}  // namespace

const std::vector<Column>& Columns() {
  static const std::vector<Column>* const columns = [] {
    auto* all = new std::vector<Column>;  // never destroyed: usable at exit too
    AddNames(*all);
    AddBytes(*all);
    AddExemptions(*all);
    AddNmse(*all);
    AddCosine(*all);
    AddClosed(*all);
    AddOpen(*all);
    AddSpeed(*all);
    return all;
  }();
  return *columns;
}

}  // namespace slimgrad::sim::report
