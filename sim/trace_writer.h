// Writes gradient traces (docs/trace_format.md): the folder appears whole, and readable by
// Trace::Open, or not at all.
//
//   SLIMGRAD_ASSIGN_OR_RETURN(TraceWriter writer, TraceWriter::Create(folder, schema));
//   for each step and rank: SLIMGRAD_RETURN_IF_ERROR(writer.Gradients(step, rank, tensors));
//   SLIMGRAD_RETURN_IF_ERROR(writer.Finish());
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "core/tensor.h"
#include "sim/trace.h"
#include "sim/trace_schema.h"

namespace slimgrad::sim {

// Equal calls write equal bytes. Tensors are borrowed for the call. Use one object from one thread
// at a time. Destroying an unfinished writer removes what it wrote. Errors are kIo for the disk;
// kInvalidArgument and kMismatch for what is no trace.
class TraceWriter {
 public:
  // `folder` must not exist, or be empty. The file names of data, weights and timing in `schema`
  // are set by the calls below.
  static Result<TraceWriter> Create(const std::filesystem::path& folder, TraceSchema schema);

  // One worker's gradients at one step, in model order and of the schema's dtype (CHECKed, with
  // their sizes). Every step and rank once.
  Status Gradients(std::int64_t step, std::int64_t rank, std::span<const ConstView> tensors);

  // One span a tensor, in model order.
  Status InitialWeights(std::span<const In> weights);
  Status FinalWeights(std::span<const In> weights);

  // The tensors of data.safetensors; `source.file` is ignored.
  Status Data(TraceDataSource source, std::span<const SafetensorsEntry> tensors);

  // Empty spans are left out.
  Status Timing(const TraceTiming& timing);

  void SetResults(TraceResults results) { schema_.results = std::move(results); }

  // Writes trace.json, opens the whole as a reader would, and lets the folder appear.
  Status Finish();

 private:
  TraceWriter(PendingFolder folder, TraceSchema schema);

  Status Write(const std::string& file, std::span<const SafetensorsEntry> tensors);
  Status Weights(const std::string& file, std::span<const In> weights);

  PendingFolder folder_;
  TraceSchema schema_;
  std::vector<bool> written_;  // [steps, world_size]
};

}  // namespace slimgrad::sim
