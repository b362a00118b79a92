// Kernels: found by their host stubs, launched in streams, and as nodes of graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tools/ptxrun/ptx/module.h"
#include "tools/ptxrun/runtime/graph.h"

namespace ptxrun {

// Null where no loaded module has PTX for it.
ptx::Function* FindKernel(const void* stub);

// Dynamic shared memory that a launch may ask for: what is left of 48 KB, unless
// cudaFuncSetAttribute allowed more.
std::int64_t DynamicSharedBytes(const ptx::Function& kernel);

// Whether the device has so much shared memory for a block that asks for it.
bool FitsOptIn(const ptx::Function& kernel, std::size_t dynamic_bytes);

// What a kernel node does when its graph runs; empty for a kernel that is not known.
Work KernelWork(const cudaKernelNodeParams& parameters);

enum class Blocks { kInTurn, kTogether };

// Checks a launch as CUDA does, copies its arguments and issues it.
cudaError_t Launch(const void* stub, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t handle, Blocks blocks = Blocks::kInTurn);

}  // namespace ptxrun
