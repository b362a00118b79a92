// Reads gradient traces: docs/trace_format.md is normative. Opening checks all that its "Rules a
// reader checks" asks for; step files are mapped one at a time, when they are used.
//
//   SLIMGRAD_ASSIGN_OR_RETURN(const Trace trace, Trace::Open("traces/digits_mlp"));
//   SLIMGRAD_ASSIGN_OR_RETURN(const StepGradients gradients, trace.Gradients(step, rank));
//   for (const ConstView& gradient : gradients.tensors()) ...
//
// A Trace and what it hands out may be read from many threads. The folder must not change
// meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "core/mapped_file.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "core/tensor.h"
#include "sim/trace_schema.h"

namespace slimgrad::sim {

// One worker's gradients at one step. Owns the map of their file; moving it keeps the views valid.
class StepGradients {
 public:
  // In model order, of the trace's gradient dtype. Values may be non-finite.
  std::span<const ConstView> tensors() const { return tensors_; }

 private:
  friend class Trace;

  MappedFile file_;
  std::vector<ConstView> tensors_;
};

// Labelled examples; borrowed from the trace.
struct LabelledRows {
  std::size_t rows = 0;       // >= 1
  std::size_t features = 0;   // inputs a row, >= 1
  std::size_t positions = 1;  // labels a row
  ConstView inputs;           // U8 or F32 [rows, features]
  ConstView labels;           // U8, I32 or I64 [rows, positions]
  float input_scale = 1;

  // out[i] = float(value) * input_scale, for the `features` inputs of one row (sizes CHECKed).
  void CopyInputs(std::size_t row, Out out) const;

  // 0 <= label, and < classes where they are known.
  std::int64_t Label(std::size_t row, std::size_t position = 0) const;
};

// Which rows of the training set each worker saw; borrowed from the trace.
struct BatchOrder {
  std::size_t world_size = 0;
  std::size_t batch = 0;  // rows a worker a step, >= 1
  ConstView rows;         // U16 or I32 [steps, world_size, batch]

  // A row of the training set, 0 <= row < its rows; `i` counts from 0 to batch - 1.
  std::size_t Row(std::size_t step, std::size_t rank, std::size_t i) const;
};

struct TraceData {
  LabelledRows train;
  std::optional<LabelledRows> eval;
  std::optional<BatchOrder> batches;
};

// Microseconds, finite and >= 0; empty: not measured.
struct TraceTiming {
  In ready_us;      // [steps, world_size, tensors], from the start of the backward pass
  In forward_us;    // [steps, world_size]
  In backward_us;   // [steps, world_size]
  In optimizer_us;  // [steps]
};

class Trace {
 public:
  // kIo for a missing file or folder, kCorrupt and kMismatch for contents; each names file, field,
  // expected and found.
  static Result<Trace> Open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const TraceSchema& schema() const { return schema_; }
  std::span<const TensorSpec> tensors() const { return schema_.tensors; }

  // 0 <= step < schema().steps and 0 <= rank < schema().world_size (CHECKed). Maps and checks the
  // file.
  Result<StepGradients> Gradients(std::int64_t step, std::int64_t rank) const;

  // Null, or empty, when the trace has none. One span a tensor, in model order; finite.
  const TraceData* data() const { return data_ ? &*data_ : nullptr; }
  std::span<const In> initial_weights() const { return initial_weights_; }
  std::span<const In> final_weights() const { return final_weights_; }
  const TraceTiming& timing() const { return timing_; }

 private:
  Trace() = default;

  // The entries of one file of the folder; the map is kept for the life of the trace.
  Result<Safetensors> Map(const std::string& file);
  Status CheckStepFiles() const;
  Status CheckStepFile(std::int64_t step, std::int64_t rank) const;
  Status LoadData();
  Status LoadTiming();
  Result<std::vector<In>> LoadWeights(const std::string& name);

  std::filesystem::path folder_;
  TraceSchema schema_;
  std::vector<MappedFile> files_;
  std::optional<TraceData> data_;
  std::vector<In> initial_weights_;
  std::vector<In> final_weights_;
  TraceTiming timing_;
};

}  // namespace slimgrad::sim
