#include "sim/trace_writer.h"

#include <utility>

#include "core/check.h"

namespace slimgrad::sim {
namespace {

constexpr const char* kData = "data.safetensors";
constexpr const char* kInitial = "initial.safetensors";
constexpr const char* kFinal = "final.safetensors";
constexpr const char* kTiming = "timing.safetensors";

std::span<const std::byte> BytesOf(const ConstView& view) {
  return {static_cast<const std::byte*>(view.data), view.numel * SizeOf(view.dtype)};
}

// The files that a schema names only once they are written.
void ForgetFiles(TraceSchema& schema) {
  schema.data.reset();
  schema.initial_weights.reset();
  schema.final_weights.reset();
  schema.timing.reset();
}

}  // namespace

TraceWriter::TraceWriter(PendingFolder folder, TraceSchema schema)
    : folder_(std::move(folder)),
      schema_(std::move(schema)),
      written_(static_cast<std::size_t>(schema_.steps * schema_.world_size)) {}

Result<TraceWriter> TraceWriter::Create(const std::filesystem::path& folder, TraceSchema schema) {
  ForgetFiles(schema);
  // Refuses a bad schema before hours of training rather than after.
  SLIMGRAD_RETURN_IF_ERROR(TraceSchemaText(schema).status());
  SLIMGRAD_ASSIGN_OR_RETURN(PendingFolder pending, PendingFolder::Create(folder));
  return TraceWriter(std::move(pending), std::move(schema));
}

Status TraceWriter::Gradients(std::int64_t step, std::int64_t rank,
                              std::span<const ConstView> tensors) {
  SLIMGRAD_CHECK(step >= 0 && step < schema_.steps && rank >= 0 && rank < schema_.world_size);
  SLIMGRAD_CHECK(tensors.size() == schema_.tensors.size());
  const auto index = static_cast<std::size_t>(step * schema_.world_size + rank);
  SLIMGRAD_CHECK(!written_[index]);
  std::vector<SafetensorsEntry> entries;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = schema_.tensors[i];
    SLIMGRAD_CHECK(tensors[i].dtype == schema_.gradient_dtype && tensors[i].numel == spec.numel());
    entries.push_back({spec.name, tensors[i].dtype, spec.shape, BytesOf(tensors[i])});
  }
  SLIMGRAD_RETURN_IF_ERROR(Write(StepFileName(step, rank), entries));
  written_[index] = true;
  return {};
}

Status TraceWriter::InitialWeights(std::span<const In> weights) {
  schema_.initial_weights = kInitial;
  return Weights(kInitial, weights);
}

Status TraceWriter::FinalWeights(std::span<const In> weights) {
  schema_.final_weights = kFinal;
  return Weights(kFinal, weights);
}

Status TraceWriter::Data(TraceDataSource source, std::span<const SafetensorsEntry> tensors) {
  source.file = kData;
  schema_.data = std::move(source);
  return Write(kData, tensors);
}

Status TraceWriter::Timing(const TraceTiming& timing) {
  const std::int64_t steps = schema_.steps;
  const std::int64_t world = schema_.world_size;
  const auto tensors = static_cast<std::int64_t>(schema_.tensors.size());
  std::vector<SafetensorsEntry> entries;
  const auto add = [&](const char* name, In values, std::vector<std::int64_t> shape) {
    if (!values.empty())
      entries.push_back({name, DType::kF32, std::move(shape), std::as_bytes(values)});
  };
  add("ready_us", timing.ready_us, {steps, world, tensors});
  add("forward_us", timing.forward_us, {steps, world});
  add("backward_us", timing.backward_us, {steps, world});
  add("optimizer_us", timing.optimizer_us, {steps});
  schema_.timing = kTiming;
  return Write(kTiming, entries);
}

Status TraceWriter::Finish() {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (written_[i]) continue;
    const std::size_t world = static_cast<std::size_t>(schema_.world_size);
    return InvalidArgument(
        "trace: expected the gradients of every step and rank, found none of step " +
        std::to_string(i / world) + ", rank " + std::to_string(i % world));
  }
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string text, TraceSchemaText(schema_));
  SLIMGRAD_RETURN_IF_ERROR(WriteFileAtomically(folder_.path() / kTraceJson, text));
  SLIMGRAD_RETURN_IF_ERROR(Trace::Open(folder_.path()).status());
  return folder_.Commit();
}

Status TraceWriter::Write(const std::string& file, std::span<const SafetensorsEntry> tensors) {
  Result<std::vector<std::byte>> bytes = SerializeSafetensors(tensors);
  if (!bytes.ok()) return bytes.status().In(file);
  return WriteFileAtomically(folder_.path() / file, *bytes);
}

Status TraceWriter::Weights(const std::string& file, std::span<const In> weights) {
  SLIMGRAD_CHECK(weights.size() == schema_.tensors.size());
  std::vector<SafetensorsEntry> entries;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorSpec& spec = schema_.tensors[i];
    entries.push_back({spec.name, DType::kF32, spec.shape, std::as_bytes(weights[i])});
  }
  return Write(file, entries);
}

}  // namespace slimgrad::sim
