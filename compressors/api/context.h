// What a compressor is told about the step it works in. Made by the driver, read-only to methods.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/random.h"
#include "core/scratch.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad {

// Things that methods count for the report.
struct Counters {
  std::uint64_t saturated = 0;  // finite values that the wire type could not hold
};

struct Context {
  Backend backend;
  const TensorSpec* tensor = nullptr;  // never null
  Scratch* scratch = nullptr;          // never null; the calling thread's
  Counters* counters = nullptr;        // never null

  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  double learning_rate = 0;  // of this step, 0 when the trainer does not say
  double loss_scale = 1;     // by which the trainer multiplied this step's gradients

  // Keys of this tensor and step; `purpose` keeps several uses in one method apart.
  RandomKey PrivateKey(std::string_view purpose) const {
    return MakeRandomKey(seed, step, purpose, tensor->name, rank);
  }
  RandomKey SharedKey(std::string_view purpose) const {
    return MakeRandomKey(seed, step, purpose, tensor->name, kShared);
  }
};

}  // namespace slimgrad
