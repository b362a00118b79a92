// What benchmarks:cuda_kernels measures: calls of kernels on arrays in a GPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/scratch.h"
#include "kernels/cuda_stream.h"

namespace slimgrad::benchmarks {

// Elements of each array that an operation uses.
struct Sizes {
  std::size_t x = 0, residual = 0, y = 0;
  std::size_t codes = 0;             // bytes
  std::size_t scales = 0, more = 0;  // levels, norms or factors
  std::size_t chosen = 0;            // indices, and as many values
};

struct Arrays {
  Arrays(const Sizes& sizes, Memory& memory);

  Buffer<float> x, residual, y;
  Buffer<std::uint8_t> codes;
  Buffer<float> scales, more;
  Buffer<std::uint32_t> indices;
  Buffer<float> values;
  Buffer<std::uint64_t> count;  // one
};

using CudaCall = std::function<void(const Backend&, Scratch&, Arrays&)>;

struct CudaOperation {
  std::string name;
  double bytes;  // that must be moved, an element
  std::function<Sizes(std::size_t n)> sizes;
  CudaCall prepare;  // on the host, once: what a decoder decodes; may be empty
  CudaCall run;
};

std::vector<CudaOperation> AllCudaOperations();

// An operation with its memory, its input made.
class CudaCase {
 public:
  CudaCase(const CudaOperation& operation, std::size_t n, CudaStream& stream);

  // The timed part.
  void Run() { operation_.run(stream_.backend(), scratch_, device_); }

  // Runs once, and compares every array with what the CPU makes of the same input, bit for bit.
  bool MatchesCpu();

 private:
  const CudaOperation& operation_;
  CudaStream& stream_;
  Arrays host_, device_;
  Scratch scratch_;
};

}  // namespace slimgrad::benchmarks
