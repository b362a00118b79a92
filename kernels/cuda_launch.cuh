// Private to the cuda kernels: how one is put on a backend's stream, and what every kernel shares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/blocks.h"
#include "kernels/cuda_device.h"
#include "kernels/cuda_stream.h"

namespace slimgrad::kernels::cuda {

// Threads of a block, where a kernel has no reason for another number.
inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kWarp = 32;

// Backend::only_if, as the first parameter of every kernel: `if (guard.Closed()) return;`.
struct Guard {
  const std::uint64_t* only_if;
  __device__ bool Closed() const { return only_if != nullptr && *only_if == 0; }
};

inline cudaStream_t StreamOf(const Backend& backend) {
  return static_cast<cudaStream_t>(backend.cuda->handle());
}

// Blocks for `items`, each block taking `per_block` at a time and striding over the grid: enough to
// fill the device several times over, at least one.
inline unsigned BlocksFor(const Backend& backend, std::size_t items, std::size_t per_block) {
  const auto most = static_cast<std::size_t>(backend.cuda->multiprocessors()) * 16;
  return static_cast<unsigned>(std::clamp<std::size_t>(BlockCount(items, per_block), 1, most));
}

// Puts kernel(guard, arguments...) on the backend's stream; what goes wrong, CudaStream::Wait says.
// Nothing waits, so a graph can be captured around it.
template <class... Parameters, class... Arguments>
void Launch(const Backend& backend, const char* name, unsigned blocks, unsigned threads,
            void (*kernel)(Guard, Parameters...), Arguments... arguments) {
  const CurrentDevice current(backend.cuda->ordinal());
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = StreamOf(backend);
  // Not <<<>>>, which says what went wrong by cudaGetLastError alone: that may be another's error.
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, Guard{backend.only_if},
                                               static_cast<Parameters>(arguments)...);
  backend.cuda->Note(error, name);
}

// Sets memory to zeros, whatever only_if says.
inline void Clear(const Backend& backend, void* memory, std::size_t bytes) {
  const CurrentDevice current(backend.cuda->ordinal());
  backend.cuda->Note(cudaMemsetAsync(memory, 0, bytes, StreamOf(backend)), "clearing");
}

// Where this thread starts in a loop over items, and how far it steps: the grid's.
__device__ inline std::size_t FirstItem() {
  return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::size_t ItemStride() { return std::size_t{gridDim.x} * blockDim.x; }

// Where it is in its block.
__device__ inline unsigned Lane() { return threadIdx.x % kWarp; }
__device__ inline unsigned WarpOfBlock() { return threadIdx.x / kWarp; }

// CUDA's type for 64-bit atomics.
using Wide = unsigned long long;  // NOLINT
static_assert(sizeof(Wide) == sizeof(std::uint64_t));

__device__ inline Wide* AsWide(std::uint64_t* number) { return reinterpret_cast<Wide*>(number); }

// Adds the counts of a block's threads to *total, if there is one. Whole blocks call it. Integers:
// the order of the additions changes nothing.
__device__ inline void AddCounts(std::uint32_t count, std::uint64_t* total) {
  const std::uint32_t sum = __reduce_add_sync(~0U, count);
  if (total != nullptr && sum > 0 && Lane() == 0) atomicAdd(AsWide(total), Wide{sum});
}

}  // namespace slimgrad::kernels::cuda
