// What a run found, as plain data, and its renderings: terminal table, JSON, CSV, HTML page.
//
// Measuring fills a Report; everything here only reads it. All functions are pure: no clock, no
// environment, no global state, safe to call from any thread, and the same Report gives the same
// bytes. Measured times live in Timings, apart from the results, so that report.json and
// report.csv of a rerun are byte-identical.
//
// docs/report_format.md is normative for the files; docs/design.md, "Accounting", for the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"

namespace slimgrad::sim {

// Text for the reader's eye, in the order of printing: {"trace", "digits_mlp"}. Never dates, host
// names or paths in a Report's: they would differ between reruns.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Which gradients a number comes from. Open: the recorded ones, whatever the compressor did to the
// weights before. Closed: new ones, made by the model at the weights that compression led to.
enum class Loop : std::uint8_t { kOpen, kClosed };

// A measure of every step, summed up. `tail` is the bad end: the 95th percentile of an error, the
// 5th of a cosine. `worst` is the tensor with the worst mean over the steps.
struct Spread {
  double mean = 0;
  double median = 0;
  double tail = 0;
  std::string worst_tensor;
  double worst = 0;
};

struct NamedValue {
  std::string name;
  double value = 0;
};

// Where training ended in one of the two loops. Unset values are shown as "n/a".
struct Outcome {
  std::string failure;  // empty, or why it ended early: "diverged at step 12"
  // |w - w_none| / |w_none|, 2-norms over all final weights, w_none from the uncompressed run in
  // the same loop.
  std::optional<double> weight_distance;
  std::optional<double> eval_loss;      // nats, mean over the evaluation set
  std::optional<double> eval_accuracy;  // fraction, 0 to 1
  std::vector<double> train_loss;       // per step, mean over workers; may be empty
};

// One compressor spec. Rows are shown in the order given; the dense baselines come first.
struct Row {
  std::string spec;                     // canonical text
  std::string label;                    // as the user typed it
  std::vector<std::string> algorithms;  // collectives used, "all_gather"; several if tensors differ
  std::string failure;                  // empty, or why this spec has no (further) numbers

  std::optional<double> payload_bits;  // bits a parameter: one rank's frames / parameters
  std::optional<double> sent_bytes;    // a worker a step to other ranks, mean; unset with one rank
  std::optional<double> received_bytes;  // likewise, from other ranks
  double dense_fraction = 0;             // of the parameters, that went uncompressed; 0 to 1
  std::string dense_reason;              // why: "3 of 4 tensors below 64 elements"; empty if none
  std::int64_t saturated = 0;            // finite values that overflowed the wire type, all ranks
  std::int64_t skipped_steps = 0;        // a gradient was NaN or Inf

  // Of the averaged gradient against the exact average, a step, all tensors together.
  std::optional<Spread> nmse;    // |a' - a|^2 / |a|^2
  std::optional<Spread> cosine;  // a'.a / (|a'| |a|)

  // Over the steps; NaN marks a skipped step. Empty where there is nothing to show.
  std::vector<double> nmse_steps;
  std::vector<double> residual_norm_steps;  // 2-norm of error feedback's residual, mean over ranks
  std::vector<NamedValue> tensor_nmse;      // per tensor: mean over the steps

  std::optional<Outcome> open_loop;    // unset: not asked for, or no optimizer to replay
  std::optional<Outcome> closed_loop;  // unset: not asked for, or the model cannot be run
};

struct Report {
  Facts provenance;  // tool version, trace, optimizer, steps replayed, seed, baseline, ...
  std::vector<std::string> notes;  // sentences that keep the reader from a wrong conclusion
  std::int64_t world_size = 0;     // workers
  std::int64_t parameters = 0;     // elements of one gradient, all tensors
  Loop measured_in = Loop::kOpen;  // where bytes, NMSE, cosine and residual come from
  std::vector<Row> rows;

  // True if a spec failed or diverged, in any loop: the command's exit status follows from it.
  bool HasFailures() const;
};

// Measured on one machine, different at every run. Throughput counts the gradient at fp32 size
// (4 bytes a parameter) that one worker encodes, or whose average it decodes, a second.
struct RowTiming {
  std::string spec;                                   // canonical text, as in Row
  std::optional<double> encode_seconds;               // whole run, sum over steps and workers
  std::optional<double> decode_seconds;               // whole run, of one worker
  std::optional<double> encode_gigabytes_per_second;  // 10^9 bytes
  std::optional<double> decode_gigabytes_per_second;
  std::optional<double> wall_seconds;  // everything this spec took: exchange, optimizer, model
};

struct Timings {
  Facts machine;                // where it was measured: CPU, threads
  std::vector<RowTiming> rows;  // matched to a Report's by spec; a row may be missing
};

// `width`: columns of the terminal; tables are split to fit 100 or more, never cut. Plain UTF-8
// without control sequences; ends in a newline. `timings` may be null, here and below.
std::string ToText(const Report& report, const Timings* timings, int width = 100);

std::string ToJson(const Report& report);
std::string ToCsv(const Report& report);

// One page that needs no network. Shows `timings`, marked as measured on one machine.
std::string ToHtml(const Report& report, const Timings* timings);

std::string TimingsToJson(const Timings& timings);

// Writes report.json, report.csv, timings.json (if given) and report.html into `folder`, making
// it if need be: all of them whole, or none. Errors: kIo.
Status WriteReport(const std::string& folder, const Report& report, const Timings* timings);

}  // namespace slimgrad::sim
