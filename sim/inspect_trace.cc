#include "sim/inspect_trace.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "kernels/elementwise.h"
#include "sim/inspect_text.h"

namespace slimgrad::sim {
namespace {

std::string OptimizerText(const OptimizerConfig& config) {
  std::string text(NameOf(config.kind));
  if (config.kind == OptimizerConfig::Kind::kSgd) {
    text += fmt::format(", momentum {}, dampening {}{}", config.momentum, config.dampening,
                        config.nesterov ? ", Nesterov" : "");
  } else {
    text += fmt::format(", betas {} and {}, eps {}", config.beta1, config.beta2, config.eps);
  }
  text += fmt::format(", weight decay {}", config.weight_decay);
  return text + (config.clip_global_norm
                     ? fmt::format(", clipped to a norm of {}", *config.clip_global_norm)
                     : ", no clipping");
}

std::string ModelText(const TraceSchema& schema) {
  if (!schema.model) return "not described";
  std::string text = fmt::format("{}, {} parameters", schema.model->kind, schema.model->parameters);
  if (!schema.model->graph) return text + "; it cannot be run, accuracy is n/a";
  std::string ops;
  for (const ModelOp& op : *schema.model->graph) {
    ops += (ops.empty() ? "" : ", ") + std::string(NameOf(op.kind));
  }
  return text + ": " + ops;
}

std::string SampleText(const TraceSchema& schema) {
  const TraceSample& sample = *schema.sample;
  return fmt::format("{} of {} steps, {} of {} tensors, {} of {} parameters", schema.steps,
                     sample.training_steps, schema.tensors.size(), sample.model_tensors,
                     schema.parameters(), sample.model_parameters);
}

std::string DataText(const Trace& trace) {
  const TraceData* data = trace.data();
  if (data == nullptr) return "none";
  const TraceDataSource& source = *trace.schema().data;
  std::string text = source.name.empty() ? "" : source.name + ": ";
  text += fmt::format("{} training rows, {} features", data->train.rows, data->train.features);
  if (data->train.positions > 1) text += fmt::format(", {} positions", data->train.positions);
  if (source.classes) text += fmt::format(", {} classes", *source.classes);
  text +=
      data->eval ? fmt::format("; {} evaluation rows", data->eval->rows) : "; no evaluation set";
  return text + (data->batches ? fmt::format("; batches of {} rows a worker", data->batches->batch)
                               : "; no batch order");
}

std::string WeightsText(const Trace& trace) {
  const bool initial = !trace.initial_weights().empty();
  const bool final = !trace.final_weights().empty();
  if (initial && final) return "initial and final";
  if (initial) return "initial";
  return final ? "final" : "none";
}

std::string TimingText(const TraceTiming& timing) {
  std::string text;
  const auto add = [&](In values, const char* name) {
    if (!values.empty()) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(timing.ready_us, "ready times");
  add(timing.forward_us, "forward");
  add(timing.backward_us, "backward");
  add(timing.optimizer_us, "optimizer");
  return text.empty() ? "none" : text;
}

std::string ResultsText(const TraceResults& results) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (results.final_eval_loss) {
    add("evaluation loss " + report::ThreeDigits(*results.final_eval_loss) + " nats");
  }
  if (results.final_eval_accuracy) {
    add("evaluation accuracy " + report::ThreeDigits(*results.final_eval_accuracy));
  }
  if (results.eval_count) add(fmt::format("of {} rows", *results.eval_count));
  if (!results.train_loss.empty()) {
    add("training loss " + report::ThreeDigits(results.train_loss.front()) + " to " +
        report::ThreeDigits(results.train_loss.back()) + " nats");
  }
  return text.empty() ? "none" : text;
}

std::string NotesText(std::string_view label, const TraceNotes& notes) {
  std::string text;
  for (const auto& [name, value] : notes)
    text += Line(text.empty() ? label : "", fmt::format("{}: {}", name, value));
  return text;
}

// Checks every step file on the way.
Result<std::string> GradientsText(const Trace& trace) {
  const TraceSchema& schema = trace.schema();
  std::int64_t non_finite = 0;
  for (std::int64_t step = 0; step < schema.steps; ++step) {
    for (std::int64_t rank = 0; rank < schema.world_size; ++rank) {
      SLIMGRAD_ASSIGN_OR_RETURN(const StepGradients gradients, trace.Gradients(step, rank));
      const bool finite = std::ranges::all_of(gradients.tensors(), [](const ConstView& tensor) {
        std::uint64_t count = 0;
        kernels::CountNonFinite(Backend{}, tensor, &count);
        return count == 0;
      });
      if (!finite) ++non_finite;
    }
  }
  const double bytes =
      static_cast<double>(schema.parameters()) *
      static_cast<double>(SizeOf(schema.gradient_dtype) * schema.steps * schema.world_size);
  return fmt::format("{}, {} files checked, {}B, {}", NameOf(schema.gradient_dtype),
                     schema.steps * schema.world_size, report::ThreeDigits(bytes),
                     non_finite == 0
                         ? std::string("all finite")
                         : fmt::format("{} with values that are not finite", non_finite));
}

}  // namespace

Result<std::string> DescribeTrace(const Trace& trace) {
  const TraceSchema& schema = trace.schema();
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string gradients, GradientsText(trace));
  std::string text = Line("trace", schema.name);
  text += Line("model", ModelText(schema));
  text += Line("workers", std::to_string(schema.world_size));
  text += Line("steps", std::to_string(schema.steps));
  if (schema.sample) text += Line("sample", SampleText(schema));
  text += Line("optimizer", OptimizerText(schema.optimizer));
  text += Line("learning rate", report::ThreeDigits(schema.learning_rates.front()) + " to " +
                                    report::ThreeDigits(schema.learning_rates.back()));
  text += Line("loss", schema.cross_entropy ? "cross_entropy" : "not described");
  text += Line("gradients", gradients);
  text += Line("data", DataText(trace));
  text += Line("weights", WeightsText(trace));
  text += Line("timing", TimingText(trace.timing()));
  text += Line("results", ResultsText(schema.results));
  text += NotesText("provenance", schema.provenance);
  text += NotesText("license", schema.license);

  std::vector<std::vector<std::string>> rows = {{"tensor", "shape", "elements"}};
  for (const TensorSpec& tensor : schema.tensors) {
    rows.push_back({tensor.name, ShapeText(tensor.shape), std::to_string(tensor.numel())});
  }
  rows.push_back({"all", "", std::to_string(schema.parameters())});
  return text + "\n" + report::TextTable(std::move(rows));
}

}  // namespace slimgrad::sim
