// What the host may ask of, and set for, one kernel.
#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/ptxrun/runtime/devices.h"
#include "tools/ptxrun/runtime/launch.h"
#include "tools/ptxrun/runtime/process.h"

using ptxrun::FindKernel;
using ptxrun::FitsOptIn;
using ptxrun::Record;

namespace {

// PTX has no number of them; a plausible one for those who divide by it.
constexpr int kRegistersAThread = 32;

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  *attributes = {};
  const ptx::Function* kernel = FindKernel(stub);
  if (kernel == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  attributes->ptxVersion = kernel->module->sm;
  attributes->binaryVersion = kernel->module->sm;
  attributes->maxThreadsPerBlock = kernel->max_threads;
  attributes->sharedSizeBytes = kernel->static_shared_bytes;
  attributes->localSizeBytes = kernel->local_bytes;
  attributes->numRegs = kRegistersAThread;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(ptxrun::DynamicSharedBytes(*kernel));
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  ptx::Function* kernel = FindKernel(stub);
  if (kernel == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || !FitsOptIn(*kernel, static_cast<std::size_t>(value)))
    return Record(cudaErrorInvalidValue);
  kernel->max_dynamic_shared_bytes = value;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaFuncGetName(const char** name, const void* stub) {
  const ptx::Function* kernel = FindKernel(stub);
  if (kernel == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  *name = kernel->name.c_str();
  return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* stub) {
  if (FindKernel(stub) == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  *function = reinterpret_cast<cudaFunction_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int threads,
                                                                   std::size_t shared_bytes,
                                                                   unsigned) {
  const ptx::Function* kernel = FindKernel(stub);
  if (kernel == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  *blocks = 0;
  if (threads < 1) return Record(cudaErrorInvalidValue);
  if (threads <= kernel->max_threads && FitsOptIn(*kernel, shared_bytes))
    *blocks = ptxrun::BlocksAMultiprocessor(static_cast<unsigned>(threads));
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                          int threads, std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared_bytes,
                                                                0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* stub, int,
                                                      int) {
  const ptx::Function* kernel = FindKernel(stub);
  if (kernel == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  *bytes = static_cast<std::size_t>(ptxrun::SharedBytesOptIn()) - kernel->static_shared_bytes;
  return cudaSuccess;
}

}  // extern "C"
