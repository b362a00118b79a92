// The calls on memory pools.
#include "tools/ptxrun/runtime/pools.h"

#include <array>
#include <cstddef>
#include <mutex>

#include "tools/ptxrun/runtime/handles.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

Pool& DefaultPool(int device) {
  static std::array<Pool, ptx::kMaxDevices> pools;
  Pool& pool = pools[static_cast<std::size_t>(device)];
  pool.device = device;
  return pool;
}

// Some attributes are an int, and the rest 64 bits.
bool IsSwitch(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolReuseFollowEventDependencies ||
         attribute == cudaMemPoolReuseAllowOpportunistic ||
         attribute == cudaMemPoolReuseAllowInternalDependencies;
}

std::uint64_t AttributeOf(const Pool& pool, cudaMemPoolAttr attribute) {
  const auto set = pool.attributes.find(attribute);
  if (set != pool.attributes.end()) return set->second;
  if (IsSwitch(attribute)) return 1;
  if (attribute == cudaMemPoolAttrReleaseThreshold) return 0;
  return TheProcess().live_bytes[static_cast<std::size_t>(pool.device)];  // of those in use
}

}  // namespace
}  // namespace ptxrun

using ptxrun::FromHandle;
using ptxrun::Pool;
using ptxrun::Record;
using ptxrun::TheProcess;

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (!ptxrun::IsDevice(device)) return Record(cudaErrorInvalidDevice);
  const std::lock_guard lock(TheProcess().mutex);
  *pool = ptxrun::ToHandle(&ptxrun::DefaultPool(device));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  *pool = ptxrun::ToHandle(new Pool{properties->location.id, {}});
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete FromHandle(pool);
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions,
                                 std::size_t count) {
  const Pool& pool = *FromHandle(handle);
  const std::lock_guard lock(ptx::memory_map.mutex);
  for (std::size_t i = 0; i < count; ++i) {
    const cudaMemLocation& location = descriptions[i].location;
    if (location.type != cudaMemLocationTypeDevice || !ptxrun::IsDevice(location.id)) continue;
    ptx::memory_map.peer[location.id][pool.device] =
        descriptions[i].flags == cudaMemAccessFlagsProtReadWrite;
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const std::lock_guard lock(TheProcess().mutex);
  FromHandle(pool)->attributes[attribute] =
      ptxrun::IsSwitch(attribute) ? static_cast<std::uint64_t>(*static_cast<int*>(value))
                                  : *static_cast<std::uint64_t*>(value);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const std::lock_guard lock(TheProcess().mutex);
  const std::uint64_t number = ptxrun::AttributeOf(*FromHandle(pool), attribute);
  if (ptxrun::IsSwitch(attribute)) {
    *static_cast<int*>(value) = static_cast<int>(number);
  } else {
    *static_cast<std::uint64_t*>(value) = number;
  }
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  int& device = ptxrun::ThisThread().device;
  const int before = device;
  device = FromHandle(pool)->device;
  const cudaError_t error = cudaMallocAsync(pointer, bytes, stream);
  device = before;
  return error;
}

}  // extern "C"
