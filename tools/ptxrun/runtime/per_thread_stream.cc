// Programs built with --default-stream per-thread call these names: in them, stream 0 is the
// calling thread's own. Whatever takes no stream runs at once, and means the same in both.
#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/ptxrun/runtime/launch.h"

namespace {

cudaStream_t OrOwn(cudaStream_t stream) { return stream != nullptr ? stream : cudaStreamPerThread; }

}  // namespace

extern "C" {

// The name that nvcc's code calls.
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream) {
  return ptxrun::Launch(kernel, grid, block, arguments, shared_bytes, OrOwn(stream));
}

cudaError_t cudaLaunchKernel_ptsz(const void* stub, dim3 grid, dim3 block, void** arguments,
                                  std::size_t shared_bytes, cudaStream_t stream) {
  return ptxrun::Launch(stub, grid, block, arguments, shared_bytes, OrOwn(stream));
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* stub, dim3 grid, dim3 block,
                                             void** arguments, std::size_t shared_bytes,
                                             cudaStream_t stream) {
  return cudaLaunchCooperativeKernel(stub, grid, block, arguments, shared_bytes, OrOwn(stream));
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* stub,
                                     void** arguments) {
  cudaLaunchConfig_t own = *config;
  own.stream = OrOwn(own.stream);
  return cudaLaunchKernelExC(&own, stub, arguments);
}

cudaError_t cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, OrOwn(stream));
}

cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return cudaFreeAsync(pointer, OrOwn(stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, OrOwn(stream));
}

cudaError_t cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, OrOwn(stream));
}

cudaError_t cudaMemcpyPeer_ptds(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes) {
  return cudaMemcpyPeer(to, to_device, from, from_device, bytes);
}

cudaError_t cudaMemcpyPeerAsync_ptsz(void* to, int to_device, const void* from, int from_device,
                                     std::size_t bytes, cudaStream_t stream) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, OrOwn(stream));
}

cudaError_t cudaMemcpy2D_ptds(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemcpy2DAsync_ptsz(void* to, std::size_t to_pitch, const void* from,
                                   std::size_t from_pitch, std::size_t width, std::size_t height,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, OrOwn(stream));
}

cudaError_t cudaMemset_ptds(void* to, int value, std::size_t bytes) {
  return cudaMemset(to, value, bytes);
}

cudaError_t cudaMemsetAsync_ptsz(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(to, value, bytes, OrOwn(stream));
}

cudaError_t cudaMemset2D_ptds(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height) {
  return cudaMemset2D(to, pitch, value, width, height);
}

cudaError_t cudaMemset2DAsync_ptsz(void* to, std::size_t pitch, int value, std::size_t width,
                                   std::size_t height, cudaStream_t stream) {
  return cudaMemset2DAsync(to, pitch, value, width, height, OrOwn(stream));
}

cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, std::size_t bytes,
                                    std::size_t offset, cudaMemcpyKind kind) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}

cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, std::size_t bytes,
                                      std::size_t offset, cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, std::size_t bytes,
                                         std::size_t offset, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, OrOwn(stream));
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, OrOwn(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return cudaStreamSynchronize(OrOwn(stream));
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return cudaStreamQuery(OrOwn(stream)); }

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return cudaStreamGetDevice(OrOwn(stream), device);
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return cudaStreamWaitEvent(OrOwn(stream), event, flags);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecord(event, OrOwn(stream));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, OrOwn(stream), flags);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return cudaLaunchHostFunc(OrOwn(stream), function, data);
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return cudaStreamBeginCapture(OrOwn(stream), mode);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return cudaStreamEndCapture(OrOwn(stream), graph);
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamIsCapturing(OrOwn(stream), status);
}

cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t* graph,
                                          const cudaGraphNode_t** dependencies,
                                          const cudaGraphEdgeData** edges, std::size_t* count) {
  return cudaStreamGetCaptureInfo(OrOwn(stream), status, id, graph, dependencies, edges, count);
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
  return cudaGraphLaunch(executable, OrOwn(stream));
}

cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
  return cudaGraphUpload(executable, stream);
}

}  // extern "C"
