// The optional tensor files of a trace: data and timing.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "core/check.h"
#include "sim/trace.h"
#include "sim/trace_tensors.h"

namespace slimgrad::sim {
namespace {

struct Rows {
  const char* inputs;
  const char* labels;
};

constexpr Rows kTrain = {"train_inputs", "train_labels"};
constexpr Rows kEval = {"eval_inputs", "eval_labels"};

Status Wrong(const std::string& tensor, const std::string& expected,
             const SafetensorsEntry* found) {
  return Mismatch("tensor \"" + tensor + "\": expected " + expected + ", found " +
                  (found == nullptr ? "none" : TypeText(found->dtype, found->shape)));
}

bool AllPositive(std::span<const std::int64_t> shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent >= 1; });
}

// Inputs and labels that fit each other; `graph` allows one label a row only.
Result<LabelledRows> ReadRows(const Safetensors& file, const Rows& names, bool graph) {
  const SafetensorsEntry* inputs = file.Find(names.inputs);
  const SafetensorsEntry* labels = file.Find(names.labels);
  if (inputs == nullptr || inputs->shape.size() != 2 || !AllPositive(inputs->shape) ||
      (inputs->dtype != DType::kU8 && inputs->dtype != DType::kF32)) {
    return Wrong(names.inputs, "U8 or F32 [rows >= 1, features >= 1]", inputs);
  }
  const std::string rows = std::to_string(inputs->shape[0]);
  const bool integers =
      labels != nullptr &&
      (labels->dtype == DType::kU8 || labels->dtype == DType::kI32 || labels->dtype == DType::kI64);
  const std::size_t dimensions = labels == nullptr ? 0 : labels->shape.size();
  if (!integers || (dimensions != 1 && (graph || dimensions != 2)) ||
      labels->shape[0] != inputs->shape[0] || !AllPositive(labels->shape)) {
    return Wrong(names.labels,
                 "U8, I32 or I64 [" + rows + "]" + (graph ? "" : " or [" + rows + ", positions]"),
                 labels);
  }
  LabelledRows result;
  result.rows = static_cast<std::size_t>(inputs->shape[0]);
  result.features = static_cast<std::size_t>(inputs->shape[1]);
  result.positions = dimensions == 2 ? static_cast<std::size_t>(labels->shape[1]) : 1;
  result.inputs = inputs->view();
  result.labels = labels->view();
  return result;
}

// The evaluation set looks like the training set, but for the number of rows.
Status CheckAlike(const LabelledRows& train, const LabelledRows& eval) {
  const auto text = [](const LabelledRows& rows) {
    return std::string(NameOf(rows.inputs.dtype)) + " inputs with " +
           std::to_string(rows.features) + " features and " +
           std::string(NameOf(rows.labels.dtype)) + " labels with " +
           std::to_string(rows.positions) + " positions";
  };
  if (text(train) == text(eval)) return {};
  return Mismatch("eval_inputs, eval_labels: expected, as in training, " + text(train) +
                  ", found " + text(eval));
}

Result<BatchOrder> ReadBatches(const SafetensorsEntry& entry, const TraceSchema& schema,
                               std::size_t rows) {
  const auto& shape = entry.shape;
  if ((entry.dtype != DType::kU16 && entry.dtype != DType::kI32) || shape.size() != 3 ||
      shape[0] != schema.steps || shape[1] != schema.world_size || shape[2] < 1) {
    return Wrong("batches",
                 "U16 or I32 [" + std::to_string(schema.steps) + ", " +
                     std::to_string(schema.world_size) + ", batch >= 1]",
                 &entry);
  }
  SLIMGRAD_RETURN_IF_ERROR(CheckBelow("batches", entry.view(), static_cast<std::int64_t>(rows)));
  return BatchOrder{static_cast<std::size_t>(shape[1]), static_cast<std::size_t>(shape[2]),
                    entry.view()};
}

// One more than the largest label. With a graph, the model's: a label beyond its logits has no
// loss.
Result<std::int64_t> LabelEnd(const TraceSchema& schema, std::size_t features) {
  const std::optional<std::int64_t> classes = schema.data->classes;
  if (!schema.model || !schema.model->graph)
    return classes.value_or(std::numeric_limits<std::int64_t>::max());
  std::optional<std::size_t> logits;
  if (classes) logits = static_cast<std::size_t>(*classes);
  Result<std::unique_ptr<Model>> model =
      MakeModel(*schema.model->graph, schema.tensors, features, logits);
  if (!model.ok()) return model.status().In("trace.json: model.graph");
  return static_cast<std::int64_t>((*model)->classes());
}

Result<TraceData> ReadData(const Safetensors& file, const TraceSchema& schema) {
  const bool graph = schema.model && schema.model->graph;
  TraceData data;
  SLIMGRAD_ASSIGN_OR_RETURN(data.train, ReadRows(file, kTrain, graph));
  SLIMGRAD_ASSIGN_OR_RETURN(const std::int64_t end, LabelEnd(schema, data.train.features));
  data.train.input_scale = static_cast<float>(schema.data->input_scale);
  SLIMGRAD_RETURN_IF_ERROR(CheckBelow(kTrain.labels, data.train.labels, end));
  if (file.Find(kEval.inputs) != nullptr || file.Find(kEval.labels) != nullptr) {
    SLIMGRAD_ASSIGN_OR_RETURN(data.eval, ReadRows(file, kEval, graph));
    data.eval->input_scale = data.train.input_scale;
    SLIMGRAD_RETURN_IF_ERROR(CheckAlike(data.train, *data.eval));
    SLIMGRAD_RETURN_IF_ERROR(CheckBelow(kEval.labels, data.eval->labels, end));
  }
  if (const SafetensorsEntry* batches = file.Find("batches")) {
    SLIMGRAD_ASSIGN_OR_RETURN(data.batches, ReadBatches(*batches, schema, data.train.rows));
  }
  return data;
}

// Empty when there is no such tensor.
Result<In> ReadTimes(const Safetensors& file, const char* name,
                     const std::vector<std::int64_t>& shape) {
  const SafetensorsEntry* entry = file.Find(name);
  if (entry == nullptr) return In();
  if (entry->dtype != DType::kF32 || entry->shape != shape)
    return Wrong(name, TypeText(DType::kF32, shape), entry);
  const In values = entry->view().As<float>();
  SLIMGRAD_RETURN_IF_ERROR(CheckFinite(name, values, /*not_negative=*/true));
  return values;
}

Result<TraceTiming> ReadTiming(const Safetensors& file, const TraceSchema& schema) {
  const auto tensors = static_cast<std::int64_t>(schema.tensors.size());
  TraceTiming timing;
  SLIMGRAD_ASSIGN_OR_RETURN(
      timing.ready_us, ReadTimes(file, "ready_us", {schema.steps, schema.world_size, tensors}));
  SLIMGRAD_ASSIGN_OR_RETURN(timing.forward_us,
                            ReadTimes(file, "forward_us", {schema.steps, schema.world_size}));
  SLIMGRAD_ASSIGN_OR_RETURN(timing.backward_us,
                            ReadTimes(file, "backward_us", {schema.steps, schema.world_size}));
  SLIMGRAD_ASSIGN_OR_RETURN(timing.optimizer_us, ReadTimes(file, "optimizer_us", {schema.steps}));
  return timing;
}

}  // namespace

void LabelledRows::CopyInputs(std::size_t row, Out out) const {
  SLIMGRAD_CHECK(row < rows && out.size() == features);
  if (inputs.dtype == DType::kU8) {
    const auto values = inputs.As<std::uint8_t>().subspan(row * features, features);
    for (std::size_t i = 0; i < features; ++i) out[i] = static_cast<float>(values[i]) * input_scale;
  } else {
    const In values = inputs.As<float>().subspan(row * features, features);
    for (std::size_t i = 0; i < features; ++i) out[i] = values[i] * input_scale;
  }
}

std::int64_t LabelledRows::Label(std::size_t row, std::size_t position) const {
  SLIMGRAD_CHECK(row < rows && position < positions);
  return IntegerAt(labels, row * positions + position);
}

std::size_t BatchOrder::Row(std::size_t step, std::size_t rank, std::size_t i) const {
  SLIMGRAD_CHECK(rank < world_size && i < batch);
  return static_cast<std::size_t>(IntegerAt(rows, (step * world_size + rank) * batch + i));
}

Status Trace::LoadData() {
  const std::string& name = schema_.data->file;
  SLIMGRAD_ASSIGN_OR_RETURN(const Safetensors file, Map(name));
  Result<TraceData> data = ReadData(file, schema_);
  if (!data.ok()) return data.status().In((folder_ / name).string());
  data_ = std::move(data).value();
  return {};
}

Status Trace::LoadTiming() {
  SLIMGRAD_ASSIGN_OR_RETURN(const Safetensors file, Map(*schema_.timing));
  Result<TraceTiming> timing = ReadTiming(file, schema_);
  if (!timing.ok()) return timing.status().In((folder_ / *schema_.timing).string());
  timing_ = *timing;
  return {};
}

}  // namespace slimgrad::sim
