// The other direction of trace_schema.cc: from the fields to trace.json.
#include <nlohmann/json.hpp>

#include "sim/trace_schema.h"

namespace slimgrad::sim {
namespace {

using Json = nlohmann::json;

Json TensorsJson(const std::vector<TensorSpec>& tensors) {
  Json array = Json::array();
  for (const TensorSpec& tensor : tensors)
    array.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
  return array;
}

Json OptimizerJson(const OptimizerConfig& config) {
  Json json = {{"kind", NameOf(config.kind)}, {"weight_decay", config.weight_decay}};
  if (config.clip_global_norm) json["clip_global_norm"] = *config.clip_global_norm;
  if (config.kind == OptimizerConfig::Kind::kSgd) {
    json["momentum"] = config.momentum;
    json["dampening"] = config.dampening;
    json["nesterov"] = config.nesterov;
  } else {
    json["betas"] = {config.beta1, config.beta2};
    json["eps"] = config.eps;
  }
  return json;
}

Json GraphJson(const ModelGraph& graph) {
  Json array = Json::array();
  for (const ModelOp& op : graph) {
    Json json = {{"op", NameOf(op.kind)}};
    if (!op.weight.empty()) json["weight"] = op.weight;
    if (!op.bias.empty()) json["bias"] = op.bias;
    array.push_back(std::move(json));
  }
  return array;
}

Json ModelJson(const TraceModel& model) {
  Json json = {{"kind", model.kind}, {"parameters", model.parameters}};
  if (model.graph) json["graph"] = GraphJson(*model.graph);
  return json;
}

Json DataJson(const TraceDataSource& data) {
  Json json = {{"file", data.file}, {"input_scale", data.input_scale}};
  if (!data.name.empty()) json["name"] = data.name;
  if (data.classes) json["classes"] = *data.classes;
  return json;
}

Json SampleJson(const TraceSample& sample) {
  return {{"training_steps", sample.training_steps},
          {"step_numbers", sample.step_numbers},
          {"model_tensors", sample.model_tensors},
          {"model_parameters", sample.model_parameters}};
}

Json ResultsJson(const TraceResults& results) {
  Json json = Json::object();
  if (results.final_eval_loss) json["final_eval_loss"] = *results.final_eval_loss;
  if (results.final_eval_accuracy) json["final_eval_accuracy"] = *results.final_eval_accuracy;
  if (results.eval_count) json["eval_count"] = *results.eval_count;
  if (!results.train_loss.empty()) json["train_loss"] = results.train_loss;
  return json;
}

Json NotesJson(const TraceNotes& notes) {
  Json json = Json::object();
  for (const auto& [name, text] : notes) json[name] = text;
  return json;
}

Json SchemaJson(const TraceSchema& schema) {
  Json json = {{"format", "slimgrad-trace"},
               {"version", 1},
               {"name", schema.name},
               {"world_size", schema.world_size},
               {"steps", schema.steps},
               {"tensors", TensorsJson(schema.tensors)},
               {"gradients",
                {{"dtype", NameOf(schema.gradient_dtype)},
                 {"files", "steps/{step:05}.{rank:03}.safetensors"},
                 {"taken", "after_backward_before_clipping"}}},
               {"optimizer", OptimizerJson(schema.optimizer)},
               {"learning_rates", schema.learning_rates}};
  if (schema.cross_entropy) json["loss"] = "cross_entropy";
  if (schema.model) json["model"] = ModelJson(*schema.model);
  if (schema.data) json["data"] = DataJson(*schema.data);
  if (schema.initial_weights) json["initial_weights"] = *schema.initial_weights;
  if (schema.final_weights) json["final_weights"] = *schema.final_weights;
  if (schema.timing) json["timing"] = *schema.timing;
  if (schema.sample) json["sample"] = SampleJson(*schema.sample);
  if (const Json results = ResultsJson(schema.results); !results.empty()) json["results"] = results;
  if (!schema.provenance.empty()) json["provenance"] = NotesJson(schema.provenance);
  if (!schema.license.empty()) json["license"] = NotesJson(schema.license);
  return json;
}

}  // namespace

Result<std::string> TraceSchemaText(const TraceSchema& schema) {
  std::string text;
  try {
    const Json json = SchemaJson(schema);
    for (const auto& [key, value] : json.items()) {
      text += (text.empty() ? "{" : ",\n ") + Json(key).dump() + ": " + value.dump();
    }
  } catch (const Json::type_error&) {
    return InvalidArgument("trace.json: expected UTF-8 in every name and text, found other bytes");
  }
  text += "}\n";
  const Result<TraceSchema> read_back = ParseTraceSchema(text);
  if (!read_back.ok()) return InvalidArgument(read_back.status().message());
  return text;
}

}  // namespace slimgrad::sim
