// Named tensors in one file: the subset of safetensors (https://github.com/huggingface/safetensors)
// that docs/trace_format.md defines, with every DType of core/dtype.h. Traces and state files lie
// in it.
//
// Sizes are bytes. Both functions are thread-safe, deterministic, and keep no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/status.h"
#include "core/tensor.h"

namespace slimgrad {

// One tensor: row-major, little-endian. `bytes` is borrowed and has exactly the size that shape and
// dtype ask for.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  // The elements where they lie. Their address is a multiple of the element size when the file's is
  // a multiple of 8.
  ConstView view() const {
    return {bytes.data(), bytes.size() / SizeOf(dtype), dtype, Device::kCpu};
  }
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// A parsed file. Borrows the bytes it was parsed from.
class Safetensors {
 public:
  using Entry = SafetensorsEntry;

  // Checks every rule before anything is used; kCorrupt names `origin` (a file name for the
  // reader), the field, the expected and the found. Takes memory linear in the file's header and
  // reads no tensor data.
  static Result<Safetensors> Parse(std::span<const std::byte> file, std::string_view origin);

  // In the order of the data.
  const std::vector<Entry>& entries() const { return entries_; }

  // Null when there is no such tensor. The pointer lives as long as this object.
  const Entry* Find(std::string_view name) const;

  // Empty when the file has no __metadata__.
  const SafetensorsMetadata& metadata() const { return metadata_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  SafetensorsMetadata metadata_;
};

// The bytes of a file with these tensors. Wider element types come first, so that all data is
// aligned; otherwise the order is kept. Equal input gives equal bytes. kInvalidArgument when a name
// is used twice, reserved or not UTF-8, or when an entry's bytes do not fit its shape and dtype.
Result<std::vector<std::byte>> SerializeSafetensors(std::span<const SafetensorsEntry> entries,
                                                    const SafetensorsMetadata& metadata = {});

}  // namespace slimgrad
