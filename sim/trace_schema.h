// trace.json of a gradient trace, version 1, as C++: docs/trace_format.md is normative.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/status.h"
#include "core/tensor.h"
#include "sim/model.h"
#include "sim/optimizer.h"

namespace slimgrad::sim {

inline constexpr std::string_view kTraceJson = "trace.json";

struct TraceModel {
  std::string kind;                 // for reports, e.g. "mlp"
  std::int64_t parameters = 0;      // of the whole model, as the recorder says
  std::optional<ModelGraph> graph;  // none: the replay cannot run the model
};

struct TraceDataSource {
  std::string file;
  std::string name;                     // for reports; may be empty
  double input_scale = 1;               // the model's input is float(value) * input_scale
  std::optional<std::int64_t> classes;  // >= 1
};

// The recorded part of a run that was recorded in part.
struct TraceSample {
  std::int64_t training_steps = 0;         // of the whole run
  std::vector<std::int64_t> step_numbers;  // the training step of each recorded step
  std::int64_t model_tensors = 0;          // of the whole model
  std::int64_t model_parameters = 0;
};

// What the recorder measured.
struct TraceResults {
  std::optional<double> final_eval_loss;      // nats, mean over the evaluation set
  std::optional<double> final_eval_accuracy;  // 0 to 1
  std::optional<std::int64_t> eval_count;     // rows of the evaluation set
  std::vector<double> train_loss;             // nats, one a recorded step; empty: not recorded
};

// In the order of the keys' names; text is unquoted, numbers and booleans as JSON writes them.
using TraceNotes = std::vector<std::pair<std::string, std::string>>;

struct TraceSchema {
  std::string name;
  std::int64_t world_size = 0;         // 1 to 65 536
  std::int64_t steps = 0;              // recorded, 1 to 10 000 000
  std::vector<TensorSpec> tensors;     // in model order
  DType gradient_dtype = DType::kF32;  // kF32, kBF16 or kF16
  OptimizerConfig optimizer;
  std::vector<double> learning_rates;  // one a recorded step
  bool cross_entropy = false;          // the loss is named: "cross_entropy"
  std::optional<TraceModel> model;
  std::optional<TraceDataSource> data;
  std::optional<std::string> initial_weights;  // file names inside the folder
  std::optional<std::string> final_weights;
  std::optional<std::string> timing;
  std::optional<TraceSample> sample;
  TraceResults results;
  TraceNotes provenance;
  TraceNotes license;

  // Elements of all recorded tensors; below 2^60.
  std::int64_t parameters() const;
};

// Checks every rule of docs/trace_format.md that concerns trace.json alone, the fit of the graph to
// the tensors included. `origin` names the file in errors, which read "trace.json:
// optimizer.momentum: expected a number in [0, 1), found 1.5".
Result<TraceSchema> ParseTraceSchema(std::string_view json, std::string_view origin = kTraceJson);

// JSON that ParseTraceSchema reads back to an equal schema, sorted keys, two-space indentation, a
// newline at the end. kInvalidArgument where it would not be read back.
Result<std::string> TraceSchemaText(const TraceSchema& schema);

// "steps/00012.003.safetensors"
std::string StepFileName(std::int64_t step, std::int64_t rank);

}  // namespace slimgrad::sim
