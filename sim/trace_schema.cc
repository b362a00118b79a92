#include "sim/trace_schema.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "core/strict_json.h"
#include "sim/json_fields.h"

namespace slimgrad::sim {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxTensors = 1'000'000;
constexpr std::int64_t kMaxParameters = (std::int64_t{1} << 60) - 1;
constexpr std::size_t kMaxDimensions = 8;
constexpr std::size_t kMaxOps = 1000;

bool NotNegative(double value) { return value >= 0; }
bool Positive(double value) { return value > 0; }
bool BelowOne(double value) { return value >= 0 && value < 1; }
bool Any(double) { return true; }

// `steps` numbers, one a recorded step.
std::vector<double> ReadNumbers(const JsonFields& fields, const char* key, std::int64_t steps,
                                bool not_negative) {
  const std::string expected = "an array of " + std::to_string(steps) + " numbers" +
                               (not_negative ? " >= 0" : "") + ", one a step";
  const Json& array = fields.Array(key, expected.c_str());
  if (array.size() != static_cast<std::size_t>(steps)) fields.Fail(key, expected, Describe(array));
  std::vector<double> numbers;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (!array[i].is_number() || (not_negative && array[i].get<double>() < 0)) {
      fields.Fail(std::string(key) + "[" + std::to_string(i) + "]",
                  not_negative ? "a number >= 0" : "a number", Describe(array[i]));
      return {};
    }
    numbers.push_back(array[i].get<double>());
  }
  return numbers;
}

std::vector<std::int64_t> ReadShape(const JsonFields& fields) {
  constexpr const char* kExpected = "an array of at most 8 counts";
  const Json& array = fields.Array("shape", kExpected);
  if (array.size() > kMaxDimensions) fields.Fail("shape", kExpected, Describe(array));
  std::vector<std::int64_t> shape;
  for (const Json& extent : array) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxCount)) {
      fields.Fail("shape", kExpected, Describe(extent) + " in it");
      return {};
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

std::vector<TensorSpec> ReadTensors(const JsonFields& trace, const std::string& origin,
                                    Status* error) {
  constexpr const char* kExpected = "an array of 1 to 1000000 tensors";
  const Json& array = trace.Array("tensors", kExpected);
  if (array.empty() || array.size() > kMaxTensors)
    trace.Fail("tensors", kExpected, Describe(array));
  std::vector<TensorSpec> tensors;
  std::set<std::string> names;
  std::int64_t parameters = 0;
  for (std::size_t i = 0; i < array.size() && error->ok(); ++i) {
    const JsonFields fields(array[i], origin + ": tensors[" + std::to_string(i) + "]", error);
    TensorSpec spec{fields.Name("name"), ReadShape(fields)};
    if (spec.name == "__metadata__") fields.Fail("name", "any other name", Quoted(spec.name));
    if (!names.insert(spec.name).second)
      fields.Fail("name", "every name once", Quoted(spec.name) + " again");
    if (!Validate(spec).ok())
      fields.Fail("shape", "fewer than 2^60 elements", ShapeText(spec.shape));
    if (!error->ok()) return {};
    const auto elements = static_cast<std::int64_t>(spec.numel());
    if (elements > kMaxParameters - parameters)
      fields.Fail("shape", "fewer than 2^60 elements in all tensors", "more");
    parameters += elements;
    tensors.push_back(std::move(spec));
  }
  return tensors;
}

DType ReadGradientDType(const JsonFields& trace) {
  const JsonFields fields = trace.Object("gradients");
  fields.Choice("files", {"steps/{step:05}.{rank:03}.safetensors"});
  fields.Choice("taken", {"after_backward_before_clipping"});
  return *DTypeFromName(fields.Choice("dtype", {"F32", "BF16", "F16"}));
}

void ReadSgd(const JsonFields& fields, OptimizerConfig& config) {
  fields.OnlyKeys(
      {"kind", "clip_global_norm", "weight_decay", "momentum", "dampening", "nesterov"});
  if (fields.Has("momentum"))
    config.momentum = fields.Number("momentum", "a number in [0, 1)", BelowOne);
  if (fields.Has("dampening")) {
    config.dampening = fields.Number("dampening", "a number in [0, 1]",
                                     [](double value) { return value >= 0 && value <= 1; });
  }
  if (fields.Has("nesterov")) config.nesterov = fields.Boolean("nesterov");
  if (config.nesterov && !(config.momentum > 0 && config.dampening == 0)) {
    fields.Fail("nesterov", "false, or momentum > 0 and dampening 0",
                "true with momentum " + Json(config.momentum).dump() + " and dampening " +
                    Json(config.dampening).dump());
  }
}

void ReadAdam(const JsonFields& fields, OptimizerConfig& config) {
  constexpr const char* kExpected = "two numbers in [0, 1)";
  fields.OnlyKeys({"kind", "clip_global_norm", "weight_decay", "betas", "eps"});
  config.eps = fields.Number("eps", "a number > 0", Positive);
  const Json& betas = fields.Array("betas", kExpected);
  if (betas.size() != 2) return fields.Fail("betas", kExpected, Describe(betas));
  for (const Json& beta : betas) {
    if (!beta.is_number() || !BelowOne(beta.get<double>()))
      return fields.Fail("betas", kExpected, Describe(beta));
  }
  config.beta1 = betas[0].get<double>();
  config.beta2 = betas[1].get<double>();
}

OptimizerConfig ReadOptimizer(const JsonFields& trace) {
  const JsonFields fields = trace.Object("optimizer");
  OptimizerConfig config;
  const std::string kind = fields.Choice("kind", {"sgd", "adam", "adamw"});
  if (fields.Has("clip_global_norm")) {
    config.clip_global_norm = fields.Number("clip_global_norm", "a number > 0", Positive);
  }
  if (fields.Has("weight_decay"))
    config.weight_decay = fields.Number("weight_decay", "a number >= 0", NotNegative);
  if (kind == "sgd") {
    config.kind = OptimizerConfig::Kind::kSgd;
    ReadSgd(fields, config);
  } else {
    config.kind = kind == "adam" ? OptimizerConfig::Kind::kAdam : OptimizerConfig::Kind::kAdamW;
    ReadAdam(fields, config);
  }
  return config;
}

ModelOp ReadOp(const JsonFields& fields) {
  ModelOp op;
  const std::string kind = fields.Choice("op", {"linear", "relu", "tanh"});
  if (kind == "linear") {
    fields.OnlyKeys({"op", "weight", "bias"});
    op.kind = ModelOp::Kind::kLinear;
    op.weight = fields.Name("weight");
    if (fields.Has("bias")) op.bias = fields.Name("bias");
  } else {
    fields.OnlyKeys({"op"});
    op.kind = kind == "relu" ? ModelOp::Kind::kRelu : ModelOp::Kind::kTanh;
  }
  return op;
}

// `recorded`: parameters of the recorded tensors, in case the model's own are not given.
TraceModel ReadModel(const JsonFields& trace, std::int64_t recorded, Status* error) {
  const JsonFields fields = trace.Object("model");
  TraceModel model = {"model", recorded, std::nullopt};
  if (fields.Has("kind")) model.kind = fields.Name("kind");
  if (fields.Has("parameters")) model.parameters = fields.Count("parameters", 0, kMaxCount);
  if (!fields.Has("graph")) return model;
  constexpr const char* kExpected = "an array of 1 to 1000 ops";
  const Json& ops = fields.Array("graph", kExpected);
  if (ops.empty() || ops.size() > kMaxOps) fields.Fail("graph", kExpected, Describe(ops));
  model.graph.emplace();
  for (std::size_t i = 0; i < ops.size() && error->ok(); ++i) {
    model.graph->push_back(
        ReadOp({ops[i], fields.PlaceOf("graph") + "[" + std::to_string(i) + "]", error}));
  }
  return model;
}

TraceDataSource ReadData(const JsonFields& trace) {
  const JsonFields fields = trace.Object("data");
  TraceDataSource data;
  data.file = fields.FileName("file");
  if (fields.Has("name")) data.name = fields.Name("name");
  if (fields.Has("input_scale")) {
    // It meets the inputs as an fp32, where it must still be a scale.
    data.input_scale = fields.Number("input_scale", "a number other than 0 in the range of fp32",
                                     [](double value) {
                                       const double magnitude = std::abs(value);
                                       return magnitude >= std::numeric_limits<float>::min() &&
                                              magnitude <= std::numeric_limits<float>::max();
                                     });
  }
  if (fields.Has("classes")) data.classes = fields.Count("classes", 1, kMaxCount);
  return data;
}

TraceSample ReadSample(const JsonFields& trace, const TraceSchema& schema) {
  const JsonFields fields = trace.Object("sample");
  TraceSample sample;
  sample.training_steps = fields.Count("training_steps", schema.steps, kMaxCount);
  sample.model_tensors =
      fields.Count("model_tensors", static_cast<std::int64_t>(schema.tensors.size()), kMaxCount);
  sample.model_parameters = fields.Count("model_parameters", schema.parameters(), kMaxCount);
  const std::string expected = "an array of " + std::to_string(schema.steps) +
                               " strictly increasing counts below training_steps (" +
                               std::to_string(sample.training_steps) + ")";
  const Json& numbers = fields.Array("step_numbers", expected.c_str());
  if (numbers.size() != static_cast<std::size_t>(schema.steps)) {
    fields.Fail("step_numbers", expected, Describe(numbers));
  }
  std::int64_t previous = -1;
  for (const Json& number : numbers) {
    if (!number.is_number_unsigned() ||
        number.get<std::uint64_t>() >= static_cast<std::uint64_t>(sample.training_steps) ||
        number.get<std::int64_t>() <= previous) {
      fields.Fail("step_numbers", expected,
                  Describe(number) + " after " + std::to_string(previous));
      break;
    }
    previous = number.get<std::int64_t>();
    sample.step_numbers.push_back(previous);
  }
  return sample;
}

// What a sample cannot have: see docs/trace_format.md, "sample".
void CheckSample(const JsonFields& trace, const TraceSchema& schema) {
  const TraceSample& sample = *schema.sample;
  if (schema.model && schema.model->graph) trace.Fail("model.graph", "none with a sample", "one");
  if (schema.data) trace.Fail("data", "none with a sample", "one");
  if (!schema.final_weights) return;
  if (schema.steps < sample.training_steps) {
    trace.Fail("final_weights", "none where steps are left out", Quoted(*schema.final_weights));
  }
  if (static_cast<std::int64_t>(schema.tensors.size()) < sample.model_tensors &&
      schema.optimizer.clip_global_norm) {
    trace.Fail("final_weights", "none where tensors are left out and gradients are clipped",
               Quoted(*schema.final_weights));
  }
}

TraceResults ReadResults(const JsonFields& trace, std::int64_t steps) {
  const JsonFields fields = trace.Object("results");
  TraceResults results;
  if (fields.Has("final_eval_loss"))
    results.final_eval_loss = fields.Number("final_eval_loss", "a number", Any);
  if (fields.Has("final_eval_accuracy")) {
    results.final_eval_accuracy =
        fields.Number("final_eval_accuracy", "a number in [0, 1]",
                      [](double value) { return value >= 0 && value <= 1; });
  }
  if (fields.Has("eval_count")) results.eval_count = fields.Count("eval_count", 0, kMaxCount);
  if (fields.Has("train_loss"))
    results.train_loss = ReadNumbers(fields, "train_loss", steps, false);
  return results;
}

TraceNotes ReadNotes(const JsonFields& trace, const char* key, bool strings_only) {
  if (!trace.Has(key)) return {};
  const JsonFields fields = trace.Object(key);
  TraceNotes notes;
  for (const auto& [name, value] : fields.json().items()) {
    if (value.is_null()) continue;
    if (value.is_string()) {
      notes.emplace_back(name, value.get<std::string>());
    } else if (!strings_only && value.is_primitive()) {
      notes.emplace_back(name, value.dump());
    } else {
      fields.Fail(name, strings_only ? "a string" : "a string, a number or a boolean",
                  Describe(value));
    }
  }
  return notes;
}

// Fields that stand for themselves; what rests on several of them follows in CheckWhole.
TraceSchema ReadFields(const JsonFields& trace, const std::string& origin, Status* error) {
  TraceSchema schema;
  trace.Choice("format", {"slimgrad-trace"});
  trace.Count("version", 1, 1);
  schema.name = trace.Name("name");
  schema.world_size = trace.Count("world_size", 1, 65'536);
  schema.steps = trace.Count("steps", 1, 10'000'000);
  schema.tensors = ReadTensors(trace, origin, error);
  schema.gradient_dtype = ReadGradientDType(trace);
  schema.optimizer = ReadOptimizer(trace);
  schema.learning_rates = ReadNumbers(trace, "learning_rates", schema.steps, true);
  if (trace.Has("loss"))
    schema.cross_entropy = trace.Choice("loss", {"cross_entropy"}) == "cross_entropy";
  if (trace.Has("model")) schema.model = ReadModel(trace, schema.parameters(), error);
  if (trace.Has("data")) schema.data = ReadData(trace);
  if (trace.Has("initial_weights")) schema.initial_weights = trace.FileName("initial_weights");
  if (trace.Has("final_weights")) schema.final_weights = trace.FileName("final_weights");
  if (trace.Has("timing")) schema.timing = trace.FileName("timing");
  if (trace.Has("results")) schema.results = ReadResults(trace, schema.steps);
  schema.provenance = ReadNotes(trace, "provenance", false);
  schema.license = ReadNotes(trace, "license", true);
  return schema;
}

}  // namespace

std::int64_t TraceSchema::parameters() const {
  std::int64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += static_cast<std::int64_t>(tensor.numel());
  return sum;
}

Result<TraceSchema> ParseTraceSchema(std::string_view json, std::string_view origin_text) {
  const std::string origin(origin_text);
  const Result<Json> document = ParseStrictJson(json);
  if (!document.ok()) return document.status().In(origin);
  Status error;
  const JsonFields trace(*document, origin, &error, ": ");
  TraceSchema schema = ReadFields(trace, origin, &error);
  SLIMGRAD_RETURN_IF_ERROR(error);

  if (trace.Has("sample")) {
    schema.sample = ReadSample(trace, schema);
    CheckSample(trace, schema);
  }
  if (schema.model && schema.model->graph) {
    if (!schema.cross_entropy) trace.Fail("loss", "\"cross_entropy\" with a model graph", "none");
    std::optional<std::size_t> classes;
    if (schema.data && schema.data->classes)
      classes = static_cast<std::size_t>(*schema.data->classes);
    const auto model = MakeModel(*schema.model->graph, schema.tensors, std::nullopt, classes);
    if (!model.ok()) return model.status().In(origin + ": model.graph");
  }
  SLIMGRAD_RETURN_IF_ERROR(error);
  return schema;
}

std::string StepFileName(std::int64_t step, std::int64_t rank) {
  char text[64];
  std::snprintf(text, sizeof(text), "steps/%05lld.%03lld.safetensors", static_cast<long long>(step),
                static_cast<long long>(rank));
  return text;
}

}  // namespace slimgrad::sim
