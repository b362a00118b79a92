#include "sim/trace.h"

#include <string>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "sim/trace_tensors.h"

namespace slimgrad::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

// What lies there: not_found is an answer, being kept from looking is an error.
Result<fs::file_status> Look(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::status_known(status)) return status;
  return IoError(path.string() + ": cannot examine: " + error.message());
}

Result<TraceSchema> ReadSchema(const fs::path& folder) {
  const fs::path path = folder / kTraceJson;
  SLIMGRAD_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > kMaxJsonBytes) {
    return Corrupt(path.string() + ": expected at most " + std::to_string(kMaxJsonBytes) +
                   " bytes, found " + std::to_string(bytes.size()));
  }
  return ParseTraceSchema({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                          path.string());
}

}  // namespace

Result<Trace> Trace::Open(const fs::path& folder) {
  SLIMGRAD_ASSIGN_OR_RETURN(const fs::file_status status, Look(folder));
  if (!fs::is_directory(status)) {
    return IoError(folder.string() + ": expected the folder of a trace, found " +
                   (fs::exists(status) ? "a file" : "nothing"));
  }
  Trace trace;
  trace.folder_ = folder;
  SLIMGRAD_ASSIGN_OR_RETURN(trace.schema_, ReadSchema(folder));
  SLIMGRAD_RETURN_IF_ERROR(trace.CheckStepFiles());
  if (trace.schema_.data) SLIMGRAD_RETURN_IF_ERROR(trace.LoadData());
  if (trace.schema_.initial_weights) {
    SLIMGRAD_ASSIGN_OR_RETURN(trace.initial_weights_,
                              trace.LoadWeights(*trace.schema_.initial_weights));
  }
  if (trace.schema_.final_weights) {
    SLIMGRAD_ASSIGN_OR_RETURN(trace.final_weights_,
                              trace.LoadWeights(*trace.schema_.final_weights));
  }
  if (trace.schema_.timing) SLIMGRAD_RETURN_IF_ERROR(trace.LoadTiming());
  return trace;
}

Result<StepGradients> Trace::Gradients(std::int64_t step, std::int64_t rank) const {
  SLIMGRAD_CHECK(step >= 0 && step < schema_.steps && rank >= 0 && rank < schema_.world_size);
  const fs::path path = folder_ / StepFileName(step, rank);
  StepGradients gradients;
  SLIMGRAD_ASSIGN_OR_RETURN(gradients.file_, MappedFile::Open(path));
  SLIMGRAD_ASSIGN_OR_RETURN(const Safetensors file,
                            Safetensors::Parse(gradients.file_.bytes(), path.string()));
  Result<std::vector<ConstView>> tensors =
      MatchTensors(file, schema_.tensors, schema_.gradient_dtype);
  if (!tensors.ok()) return tensors.status().In(path.string());
  gradients.tensors_ = std::move(tensors).value();
  return gradients;
}

Result<Safetensors> Trace::Map(const std::string& file) {
  const fs::path path = folder_ / file;
  SLIMGRAD_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  files_.push_back(std::move(mapped));
  return Safetensors::Parse(files_.back().bytes(), path.string());
}

Status Trace::CheckStepFiles() const {
  for (std::int64_t step = 0; step < schema_.steps; ++step) {
    for (std::int64_t rank = 0; rank < schema_.world_size; ++rank)
      SLIMGRAD_RETURN_IF_ERROR(CheckStepFile(step, rank));
  }
  return {};
}

Status Trace::CheckStepFile(std::int64_t step, std::int64_t rank) const {
  const fs::path path = folder_ / StepFileName(step, rank);
  SLIMGRAD_ASSIGN_OR_RETURN(const fs::file_status status, Look(path));
  if (!fs::is_regular_file(status)) {
    return IoError(path.string() + ": expected the gradients of step " + std::to_string(step) +
                   " of " + std::to_string(schema_.steps) + " and rank " + std::to_string(rank) +
                   " of " + std::to_string(schema_.world_size) + ", found " +
                   (fs::exists(status) ? "something that is no regular file" : "no file"));
  }
  // What is in the file is checked when it is used. Memory for the tensors is taken before that, so
  // the file has to bear out their sizes now. No overflow: there are fewer than 2^60 elements.
  const std::uint64_t least =
      static_cast<std::uint64_t>(schema_.parameters()) * SizeOf(schema_.gradient_dtype);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return IoError(path.string() + ": cannot examine: " + error.message());
  if (size >= least) return {};
  return Corrupt(path.string() + ": file size: expected at least " + std::to_string(least) +
                 " bytes, which the tensors of trace.json take, found " + std::to_string(size));
}

Result<std::vector<In>> Trace::LoadWeights(const std::string& name) {
  SLIMGRAD_ASSIGN_OR_RETURN(const Safetensors file, Map(name));
  const std::string path = (folder_ / name).string();
  const Result<std::vector<ConstView>> views = MatchTensors(file, schema_.tensors, DType::kF32);
  if (!views.ok()) return views.status().In(path);
  std::vector<In> weights;
  for (std::size_t i = 0; i < views->size(); ++i) {
    weights.push_back((*views)[i].As<float>());
    if (Status status = CheckFinite(schema_.tensors[i].name, weights.back()); !status.ok())
      return status.In(path);
  }
  return weights;
}

}  // namespace slimgrad::sim
