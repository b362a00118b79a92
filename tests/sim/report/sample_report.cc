#include "tests/sim/report/sample_report.h"

#include <cmath>
#include <limits>

namespace slimgrad::sim {
namespace {

constexpr int kSteps = 100;
constexpr double kParameters = 2410;

struct Sketch {
  const char* spec;
  const char* label;
  const char* algorithm;
  double bits;
  double nmse;  // 0: exact
  bool feedback;
  double closed_accuracy;
  double encode;
};

// clang-format off
const Sketch kSketches[] = {
    {"none", "none", "reduce_scatter_all_gather", 32.41, 0, false, 0.9667, 9.8},
    {"bf16", "bf16", "reduce_scatter_all_gather", 16.42, 2.7e-6, false, 0.9667, 6.1},
    {"fp16", "fp16", "reduce_scatter_all_gather", 16.42, 4.1e-8, false, 0.9667, 5.7},
    {"int8(block=256,rounding=nearest)", "int8", "all_gather", 8.55, 6.4e-5, false, 0.9639, 2.2},
    {"int8(block=256,rounding=stochastic)", "int8(rounding=stochastic)", "all_gather", 8.55, 1.3e-4, false, 0.9667, 0.91},
    {"error_feedback(int8(block=256,rounding=nearest))", "error_feedback(int8)", "all_gather", 8.55, 7.0e-5, true, 0.9667, 1.6},
    {"top_k(ratio=0.01)", "top_k(ratio=0.01)", "all_gather", 0.95, 0.62, false, 0.8806, 1.1},
    {"error_feedback(top_k(ratio=0.01))", "error_feedback(top_k(ratio=0.01))", "all_gather", 0.95, 1.31, true, 0.9583, 0.94},
    {"error_feedback(top_k(ratio=0.01)|delta_index|fp16_values)", "error_feedback(top_k(ratio=0.01)|delta_index|fp16_values)", "all_gather", 0.61, 1.31, true, 0.9583, 0.72},
    {"error_feedback(top_k(ratio=0.001))", "error_feedback(top_k(ratio=0.001))", "all_gather", 0.44, 2.96, true, 0.9028, 1.0},
    {"one_bit(block=256)", "one_bit", "all_gather", 1.66, 0.44, false, 0.9417, 3.0},
    {"error_feedback(one_bit(block=256))", "error_feedback(one_bit)", "all_gather", 1.66, 0.58, true, 0.9639, 2.4},
    {"scaled_sign(block=256)", "scaled_sign", "all_gather", 1.53, 0.47, false, 0.9306, 3.4},
    {"error_feedback(scaled_sign(block=256))", "error_feedback(scaled_sign)", "all_gather", 1.53, 0.63, true, 0.9611, 2.6},
    {"error_feedback(power_sgd(rank=2,seed=0))", "error_feedback(power_sgd(rank=2))", "reduce_scatter_all_gather", 3.7, 0.18, true, 0.9667, 0.55},
    {"small_tensors(error_feedback(top_k(ratio=0.01)),below=64,use=none)", "small_tensors(error_feedback(top_k(ratio=0.01)),below=64)", "all_gather", 1.51, 1.12, true, 0.9611, 0.93},
};
// clang-format on

// Noise in [-1, 1] from an integer, so that curves look measured.
double Wobble(int a, int b) { return std::sin(12.9898 * a + 78.233 * b) * std::cos(3.7 * b + a); }

void FillSteps(const Sketch& sketch, int index, Row& row) {
  for (int step = 0; step < kSteps; ++step) {
    const double settle = sketch.feedback ? 1 - std::exp(-step / 12.0) : 1;
    const double noise = std::exp(0.25 * Wobble(index, step));
    row.nmse_steps.push_back(sketch.nmse * noise * (0.5 + 0.5 * settle));
    if (sketch.feedback) {
      row.residual_norm_steps.push_back(std::sqrt(sketch.nmse) * settle * noise *
                                        std::exp(-step / 90.0));
    }
  }
  const char* const kTensors[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
  const double kScale[] = {1.05, 0.6, 0.8, 0.35};
  for (int i = 0; i < 4; ++i) {
    row.tensor_nmse.push_back({kTensors[i], sketch.nmse * kScale[i]});
  }
}

void FillOutcomes(const Sketch& sketch, int index, Row& row) {
  Outcome open;
  open.weight_distance =
      sketch.nmse == 0 ? 0 : std::sqrt(sketch.nmse) * (sketch.feedback ? 0.02 : 0.2);
  open.eval_accuracy = std::min(0.9667, sketch.closed_accuracy + 0.004);
  open.eval_loss = 0.14 + 2.1 * (0.9667 - *open.eval_accuracy);
  row.open_loop = open;
  Outcome closed;
  closed.weight_distance = sketch.nmse == 0 ? 0 : std::sqrt(sketch.nmse) * 0.31;
  closed.eval_accuracy = sketch.closed_accuracy;
  closed.eval_loss = 0.14 + 3.2 * (0.9667 - sketch.closed_accuracy);
  for (int step = 0; step < kSteps; ++step) {
    const double pace = 16 + 60 * (0.9667 - sketch.closed_accuracy) * 4;
    closed.train_loss.push_back((2.25 * std::exp(-step / pace) + 0.08) *
                                std::exp(0.07 * Wobble(index + 40, step)));
  }
  row.closed_loop = closed;
}

Row MakeRow(const Sketch& sketch, int index) {
  Row row;
  row.spec = sketch.spec;
  row.label = sketch.label;
  row.algorithms = {sketch.algorithm};
  row.payload_bits = sketch.bits;
  const double payload_bytes = sketch.bits * kParameters / 8;
  const bool gathers = row.algorithms[0] == "all_gather";
  row.sent_bytes = gathers ? payload_bytes * 3 : payload_bytes * 1.5;
  row.received_bytes = row.sent_bytes;
  if (row.spec.rfind("small_tensors", 0) == 0) {
    row.dense_fraction = 42 / kParameters;
    row.dense_reason = "2 of 4 tensors below 64 elements (fc1.bias, fc2.bias)";
  }
  row.nmse = Spread{sketch.nmse * 0.97, sketch.nmse * 0.98, sketch.nmse * 1.24, "fc1.weight",
                    sketch.nmse * 1.05};
  const double cosine = 1 / std::sqrt(1 + sketch.nmse);
  row.cosine = Spread{cosine, cosine, cosine * (1 - 0.1 * std::min(1.0, sketch.nmse)), "fc1.weight",
                      cosine * (1 - 0.15 * std::min(1.0, sketch.nmse))};
  FillSteps(sketch, index, row);
  FillOutcomes(sketch, index, row);
  return row;
}

Row DivergedRow() {
  const Sketch sketch = {"power_sgd(rank=2,seed=0)",
                         "power_sgd(rank=2)",
                         "reduce_scatter_all_gather",
                         3.7,
                         0.24,
                         false,
                         0.95,
                         0.61};
  Row row = MakeRow(sketch, 30);
  row.closed_loop->failure = "diverged at step 37: training loss is inf";
  row.closed_loop->train_loss.resize(37);
  row.closed_loop->train_loss.push_back(std::numeric_limits<double>::infinity());
  row.closed_loop->eval_accuracy.reset();
  row.closed_loop->eval_loss.reset();
  row.closed_loop->weight_distance.reset();
  return row;
}

Row FailedRow() {
  Row row;
  row.spec = "top_k(k=4096)";
  row.label = "top_k(k=4096)";
  row.failure = "tensor 'fc1.bias': k: expected at most 32 elements, found 4096";
  return row;
}

}  // namespace

Report SampleReport() {
  Report report;
  report.provenance = {
      {"tool", "slimgrad 0.1.0"},
      {"trace", "digits_mlp: 64-32-10 MLP on the 8x8 handwritten digits, 2410 parameters"},
      {"workers", "4"},
      {"steps", "100 of 100"},
      {"optimizer", "sgd(momentum=0.9), learning rate 0.1"},
      {"seed", "1"},
      {"baseline", "none: dense fp32, reduce_scatter_all_gather"},
  };
  report.notes = {
      "Bytes, NMSE, cosine and residual come from the recorded gradients (open loop). Accuracy in "
      "the first table comes from the closed loop: every gradient made anew at the weights that "
      "compression led to.",
      "With 2410 parameters, frame headers weigh more than they do in a large model.",
  };
  report.world_size = 4;
  report.parameters = 2410;
  int index = 0;
  for (const Sketch& sketch : kSketches) report.rows.push_back(MakeRow(sketch, index++));
  report.rows[2].saturated = 12;
  report.rows[10].skipped_steps = 1;
  report.rows[10].nmse_steps[50] = std::numeric_limits<double>::quiet_NaN();
  report.rows.push_back(DivergedRow());
  report.rows.push_back(FailedRow());
  return report;
}

Timings SampleTimings() {
  Timings timings;
  timings.machine = {{"CPU", "x86-64 with AVX2"}, {"threads", "1"}};
  for (const Sketch& sketch : kSketches) {
    const double seconds = 4e-9 * kParameters * kSteps * 4 / sketch.encode;
    timings.rows.push_back(
        {sketch.spec, seconds, seconds / 2, sketch.encode, sketch.encode * 2, seconds * 4 + 0.2});
  }
  return timings;
}

Report OneRankReport() {
  Report report = SampleReport();
  report.world_size = 1;
  for (Row& row : report.rows) {
    row.sent_bytes.reset();
    row.received_bytes.reset();
    row.algorithms.clear();
  }
  return report;
}

}  // namespace slimgrad::sim
