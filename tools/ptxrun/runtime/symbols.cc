// __device__ and __constant__ variables: each device has its own copy.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

const ptx::Symbol* FindVariable(const void* symbol) {
  Process& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const auto found = process.variables.find(symbol);
  return found == process.variables.end() ? nullptr : found->second;
}

// Where the current device has a part of a variable; null for what is not in one.
std::uint8_t* Address(const void* symbol, std::size_t offset, std::size_t bytes) {
  const ptx::Symbol* variable = FindVariable(symbol);
  if (variable == nullptr || offset + bytes > variable->size) return nullptr;
  return variable->host + static_cast<std::size_t>(ThisThread().device) * variable->stride + offset;
}

cudaError_t CopyNow(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

}  // namespace
}  // namespace ptxrun

using ptxrun::Address;
using ptxrun::Record;

extern "C" {

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                               std::size_t offset, cudaMemcpyKind) {
  return ptxrun::OutsideCapture([=] {
    void* to = Address(symbol, offset, bytes);
    return to != nullptr ? ptxrun::CopyNow(to, from, bytes) : Record(cudaErrorInvalidSymbol);
  });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes,
                                 std::size_t offset, cudaMemcpyKind) {
  return ptxrun::OutsideCapture([=] {
    const void* from = Address(symbol, offset, bytes);
    return from != nullptr ? ptxrun::CopyNow(to, from, bytes) : Record(cudaErrorInvalidSymbol);
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                    std::size_t offset, cudaMemcpyKind, cudaStream_t stream) {
  void* to = Address(symbol, offset, bytes);
  if (to == nullptr) return Record(cudaErrorInvalidSymbol);
  return ptxrun::Issue(stream, cudaGraphNodeTypeMemcpy,
                       [=] { return ptxrun::CopyNow(to, from, bytes); });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                      std::size_t offset, cudaMemcpyKind, cudaStream_t stream) {
  const void* from = Address(symbol, offset, bytes);
  if (from == nullptr) return Record(cudaErrorInvalidSymbol);
  return ptxrun::Issue(stream, cudaGraphNodeTypeMemcpy,
                       [=] { return ptxrun::CopyNow(to, from, bytes); });
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  *pointer = Address(symbol, 0, 0);
  return *pointer != nullptr ? cudaSuccess : Record(cudaErrorInvalidSymbol);
}

cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  const ptx::Symbol* variable = ptxrun::FindVariable(symbol);
  if (variable == nullptr) return Record(cudaErrorInvalidSymbol);
  *bytes = variable->size;
  return cudaSuccess;
}

}  // extern "C"
