// Devices: which one is current, what each says of itself, and who reaches whose memory.
#include "tools/ptxrun/runtime/devices.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

constexpr int kCudaVersion = 13000;
constexpr int kClockKiloHertz = 1000000;
// What the driver keeps of each block's shared memory from sm_80 on.
constexpr int kReservedSharedBytes = 1024;

int Attribute(cudaDeviceAttr attribute, int device) {
  const Process& process = TheProcess();
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: return process.sm / 10;
    case cudaDevAttrComputeCapabilityMinor: return process.sm % 10;
    case cudaDevAttrMultiProcessorCount: return process.devices[0]->options.sms;
    case cudaDevAttrWarpSize: return ptx::kWarpSize;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxThreadsPerMultiProcessor:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return kMaxThreads;
    case cudaDevAttrMaxBlockDimZ: return kMaxBlockZ;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return kMaxBlocksAMultiprocessor;
    case cudaDevAttrMaxGridDimX: return kMaxGridX;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return kMaxGridYZ;
    case cudaDevAttrMaxSharedMemoryPerBlock: return kSharedBytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return SharedBytesOptIn();
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return SharedBytesOptIn() + kReservedSharedBytes;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return process.sm >= 80 ? kReservedSharedBytes : 0;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return kRegisters;
    case cudaDevAttrL2CacheSize: return kL2Bytes;
    case cudaDevAttrClockRate: return kClockKiloHertz;
    case cudaDevAttrPciBusId: return device + 1;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrStreamPrioritiesSupported: return 1;
    default: return 0;
  }
}

cudaDeviceProp Properties(int device) {
  cudaDeviceProp properties = {};
  std::strcpy(properties.name, "ptxrun interpreter");
  properties.pciBusID = device + 1;
  properties.major = TheProcess().sm / 10;
  properties.minor = TheProcess().sm % 10;
  properties.multiProcessorCount = TheProcess().devices[0]->options.sms;
  properties.warpSize = ptx::kWarpSize;
  properties.maxThreadsPerBlock = kMaxThreads;
  properties.maxThreadsPerMultiProcessor = kMaxThreads;
  properties.maxBlocksPerMultiProcessor = kMaxBlocksAMultiprocessor;
  properties.maxThreadsDim[0] = kMaxThreads;
  properties.maxThreadsDim[1] = kMaxThreads;
  properties.maxThreadsDim[2] = kMaxBlockZ;
  properties.maxGridSize[0] = kMaxGridX;
  properties.maxGridSize[1] = kMaxGridYZ;
  properties.maxGridSize[2] = kMaxGridYZ;
  properties.sharedMemPerBlock = kSharedBytes;
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(SharedBytesOptIn());
  properties.sharedMemPerMultiprocessor = properties.sharedMemPerBlockOptin + kReservedSharedBytes;
  properties.regsPerBlock = kRegisters;
  properties.regsPerMultiprocessor = kRegisters;
  properties.l2CacheSize = kL2Bytes;
  properties.totalGlobalMem = kMemoryBytes;
  properties.cooperativeLaunch = 1;
  properties.unifiedAddressing = 1;
  properties.managedMemory = 1;
  properties.concurrentKernels = 1;
  properties.canMapHostMemory = 1;
  properties.memoryPoolsSupported = 1;
  return properties;
}

}  // namespace

int SharedBytesOptIn() {
  const int sm = TheProcess().sm;
  const int kilobytes = sm >= 90 ? 227 : sm >= 86 ? 99 : sm >= 80 ? 163 : 64;
  return kilobytes << 10;
}

int BlocksAMultiprocessor(std::uint64_t threads) {
  return static_cast<int>(
      std::clamp<std::uint64_t>(kMaxThreads / threads, 1, kMaxBlocksAMultiprocessor));
}

}  // namespace ptxrun

using ptxrun::IsDevice;
using ptxrun::Record;
using ptxrun::ThisThread;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = ThisThread().device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!IsDevice(device)) return Record(cudaErrorInvalidDevice);
  ThisThread().device = device;
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return IsDevice(device) ? cudaSuccess : Record(cudaErrorInvalidDevice);
}

cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = ptxrun::DeviceCount();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = ptxrun::kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = ptxrun::kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!IsDevice(device)) return Record(cudaErrorInvalidDevice);
  *value = ptxrun::Attribute(attribute, device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!IsDevice(device)) return Record(cudaErrorInvalidDevice);
  *properties = ptxrun::Properties(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!IsDevice(device) || !IsDevice(peer)) return Record(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const int device = ThisThread().device;
  if (!IsDevice(peer) || peer == device) return Record(cudaErrorInvalidDevice);
  const std::lock_guard lock(ptx::memory_map.mutex);
  if (ptx::memory_map.peer[device][peer]) return Record(cudaErrorPeerAccessAlreadyEnabled);
  ptx::memory_map.peer[device][peer] = true;
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (!IsDevice(peer)) return Record(cudaErrorInvalidDevice);
  const std::lock_guard lock(ptx::memory_map.mutex);
  bool& reaches = ptx::memory_map.peer[ThisThread().device][peer];
  if (!reaches) return Record(cudaErrorPeerAccessNotEnabled);
  reaches = false;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return ptxrun::OutsideCapture([] { return Record(ptxrun::TheProcess().sticky_error); });
}

cudaError_t cudaDeviceReset() {
  ptxrun::TheProcess().sticky_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return cudaSuccess; }

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  *value =
      limit == cudaLimitStackSize ? std::size_t{ptx::Machine::kLocalBytes} : std::size_t{1} << 20;
  return cudaSuccess;
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }

cudaError_t cudaProfilerStop() { return cudaSuccess; }

}  // extern "C"
