// Allocation: where memory comes from, and where it rests after it was freed.
#include "tools/ptxrun/runtime/memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/devices.h"
#include "tools/ptxrun/runtime/handles.h"
#include "tools/ptxrun/runtime/process.h"
#include "tools/ptxrun/runtime/streams.h"

namespace ptxrun {
namespace {

// As cudaMalloc promises. One more such piece at the end: a small overrun meets nothing in use.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kPitchAlignment = 512;

// What new and freed memory holds. Very large blocks are left alone, or they would become real.
constexpr int kFresh = 0xA5;
constexpr int kFreed = 0xDD;
constexpr std::size_t kMaxFilledBytes = std::size_t{256} << 20;

constexpr std::size_t kMaxRestingBlocks = 64;
constexpr std::size_t kMaxRestingBytes = std::size_t{256} << 20;

void Fill(void* pointer, int pattern, std::size_t bytes) {
  if (bytes <= kMaxFilledBytes) std::memset(pointer, pattern, bytes);
}

void LayToRest(Quarantine& quarantine, void* pointer, std::size_t bytes) {
  quarantine.blocks.emplace_back(pointer, bytes);
  quarantine.bytes += bytes;
  while (quarantine.blocks.size() > kMaxRestingBlocks || quarantine.bytes > kMaxRestingBytes) {
    const auto [oldest, oldest_bytes] = quarantine.blocks.front();
    std::free(oldest);
    quarantine.bytes -= oldest_bytes;
    quarantine.blocks.pop_front();
  }
}

cudaError_t AllocateHere(void** pointer, std::size_t bytes, Owner owner) {
  return OutsideCapture([=] { return Allocate(pointer, bytes, ThisThread().device, owner); });
}

}  // namespace

cudaError_t Allocate(void** pointer, std::size_t bytes, int device, Owner owner) {
  *pointer = nullptr;
  Process& process = TheProcess();
  if (const cudaError_t sticky = process.sticky_error) return sticky;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kMemoryBytes) return Record(cudaErrorMemoryAllocation);
  void* memory = std::aligned_alloc(kAlignment, ptx::RoundUp(bytes + kAlignment, kAlignment));
  if (memory == nullptr) return Record(cudaErrorMemoryAllocation);
  Fill(memory, kFresh, bytes);
  const bool host = owner == Owner::kHost;
  const std::lock_guard lock(process.mutex);
  process.allocations[memory] = {bytes, device, host};
  if (!host) process.live_bytes[static_cast<std::size_t>(device)] += bytes;
  ptx::memory_map.Add(memory, bytes, host ? "host" : "device", host ? -1 : device);
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t Free(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  Process& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const auto found = process.allocations.find(pointer);
  if (found == process.allocations.end()) {
    Complain("bad or double cudaFree %p", pointer);
    return Record(cudaErrorInvalidValue);
  }
  const Allocation allocation = found->second;
  process.allocations.erase(found);
  if (!allocation.host)
    process.live_bytes[static_cast<std::size_t>(allocation.device)] -= allocation.bytes;
  ptx::memory_map.Remove(pointer);
  Fill(pointer, kFreed, allocation.bytes);
  LayToRest(process.quarantine, pointer, allocation.bytes);
  return cudaSuccess;
}

bool IsInside(const void* begin, std::size_t bytes, Place place) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  ptx::u64 start = 0;
  ptx::Range range = {};
  if (!ptx::memory_map.Find(address, start, range)) return place == Place::kAnywhere;
  return address + bytes <= range.end;
}

}  // namespace ptxrun

using ptxrun::Owner;
using ptxrun::Record;
using ptxrun::Stream;
using ptxrun::ThisThread;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return ptxrun::AllocateHere(pointer, bytes, Owner::kDevice);
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width_bytes,
                            std::size_t height) {
  *pitch = ptx::RoundUp(width_bytes, ptxrun::kPitchAlignment);
  return ptxrun::AllocateHere(pointer, *pitch * height, Owner::kDevice);
}

cudaError_t cudaFree(void* pointer) {
  return ptxrun::OutsideCapture([=] { return ptxrun::Free(pointer); });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return ptxrun::AllocateHere(pointer, bytes, Owner::kHost);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return ptxrun::AllocateHere(pointer, bytes, Owner::kHost);
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return ptxrun::AllocateHere(pointer, bytes, Owner::kHost);
}

cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  ptx::memory_map.Add(pointer, bytes, "host", -1);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  ptx::memory_map.Remove(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned) {
  *device_pointer = host_pointer;
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t handle) {
  if (ptxrun::IsUnknown(handle)) return Record(cudaErrorInvalidResourceHandle);
  const Stream* stream = ptxrun::FindStream(handle);
  const cudaError_t error =
      ptxrun::Allocate(pointer, bytes, ptxrun::DeviceOf(stream), Owner::kDevice);
  if (error != cudaSuccess || stream == nullptr || !stream->capture) return error;
  // A graph's addresses are fixed, as CUDA's are: the memory lives as long as the graph.
  return ptxrun::Issue(handle, cudaGraphNodeTypeMemAlloc, nullptr,
                       std::shared_ptr<void>(*pointer, ptxrun::Free));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  if (ptxrun::IsUnknown(handle)) return Record(cudaErrorInvalidResourceHandle);
  const Stream* stream = ptxrun::FindStream(handle);
  if (stream != nullptr && stream->capture)
    return ptxrun::Issue(handle, cudaGraphNodeTypeMemFree, nullptr);
  return ptxrun::Free(pointer);
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = ptxrun::kMemoryBytes;
  *free_bytes =
      *total_bytes - ptxrun::TheProcess().live_bytes[static_cast<std::size_t>(ThisThread().device)];
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, cudaMemLocation, unsigned,
                                 cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  auto* address = const_cast<void*>(pointer);
  ptx::u64 start = 0;
  ptx::Range range = {};
  const auto number = reinterpret_cast<std::uintptr_t>(pointer);
  if (!ptx::memory_map.Find(number, start, range) || number >= range.end) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -1;
    attributes->hostPointer = address;
    return cudaSuccess;
  }
  const bool host = range.device < 0;
  attributes->type = host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->device = host ? ThisThread().device : range.device;
  attributes->devicePointer = address;
  attributes->hostPointer = host ? address : nullptr;
  return cudaSuccess;
}

}  // extern "C"
