// A state file: all that one rank's compressors remember, so that a run goes on as if it had not
// stopped.
//
// It is a safetensors file, one a rank. __metadata__ holds format "slimgrad-state", version, spec,
// spec_hash, rank, world, step, seed, tensors (JSON: name, shape and range of each) and a checksum
// of the fields. A field of tensor T is named "T::path", for example "0.weight::residual";
// docs/wire_format.md is normative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "core/state.h"
#include "core/status.h"
#include "core/tensor.h"

namespace slimgrad {

inline constexpr std::uint64_t kStateVersion = 1;

struct StateHeader {
  std::string spec;  // canonical
  std::uint64_t rank = 0, world = 1;
  std::uint64_t step = 0;  // that comes next
  std::uint64_t seed = 0;
};

struct TensorState {
  const TensorSpec* tensor;
  State* state;
};

// The bytes of the file. Equal states give equal bytes.
Result<std::vector<std::byte>> SerializeState(const StateHeader& header,
                                              std::span<const TensorState> states);

// The header, after every check that needs no expectation: format, version, spec hash, checksum.
// `file` is a parsed file.
Result<StateHeader> ReadStateHeader(const Safetensors& file, std::string_view origin);

// Fills `states` (made for the same spec and tensors) and returns the header. kCorrupt for damage;
// kMismatch, naming field, expected and found, unless spec, rank, world, seed, tensors and fields
// are the expected ones (expected.step is not looked at). On any error the states are untouched.
Result<StateHeader> DeserializeState(std::span<const std::byte> file, std::string_view origin,
                                     const StateHeader& expected,
                                     std::span<const TensorState> states);

}  // namespace slimgrad
