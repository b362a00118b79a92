// Streams: what a handle stands for, and the calls on streams outside of captures.
#include "tools/ptxrun/runtime/streams.h"

#include <mutex>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

// What cudaStreamPerThread names in each thread.
Stream& OwnStream() {
  thread_local Stream stream;
  return stream;
}

cudaStream_t ToHandle(Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }

}  // namespace

Stream* FindStream(cudaStream_t handle) {
  if (handle == cudaStreamPerThread) return &OwnStream();
  if (handle == nullptr || handle == cudaStreamLegacy) return nullptr;
  Process& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (process.streams.contains(stream)) return stream;
  Complain("use of a stream that does not exist (destroyed?) %p", static_cast<void*>(stream));
  return nullptr;
}

bool IsUnknown(cudaStream_t handle) {
  return handle != nullptr && handle != cudaStreamLegacy && FindStream(handle) == nullptr;
}

int DeviceOf(const Stream* stream) {
  return stream != nullptr && stream != &OwnStream() ? stream->device : ThisThread().device;
}

}  // namespace ptxrun

using ptxrun::FindStream;
using ptxrun::Record;
using ptxrun::Stream;
using ptxrun::TheProcess;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  auto& process = TheProcess();
  auto* stream = new Stream;
  stream->device = ptxrun::ThisThread().device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = process.next_id++;
  const std::lock_guard lock(process.mutex);
  process.streams.insert(stream);
  *handle = ptxrun::ToHandle(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithPriority(handle, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr || handle == cudaStreamPerThread)
    return Record(cudaErrorInvalidResourceHandle);
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  if (stream->capture) {
    stream->capture->invalid = true;
    stream->capture->streams.erase(stream);
  }
  process.streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (ptxrun::IsUnknown(handle)) return Record(cudaErrorInvalidResourceHandle);
  Stream* stream = FindStream(handle);
  if (stream != nullptr && stream->capture) {
    stream->capture->invalid = true;
    return Record(cudaErrorStreamCaptureUnsupported);
  }
  const auto sticky = [] { return Record(TheProcess().sticky_error); };
  return stream == nullptr ? ptxrun::OutsideCapture(sticky) : sticky();
}

cudaError_t cudaStreamQuery(cudaStream_t handle) { return cudaStreamSynchronize(handle); }

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  const Stream* stream = FindStream(handle);
  *flags = stream != nullptr ? stream->flags : 0;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  const Stream* stream = FindStream(handle);
  *priority = stream != nullptr ? stream->priority : 0;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  const Stream* stream = FindStream(handle);
  *id = stream != nullptr ? stream->id : 1;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  *device = ptxrun::DeviceOf(FindStream(handle));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return ptxrun::Issue(handle, cudaGraphNodeTypeHost, [=] {
    function(data);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  const Stream* stream = FindStream(handle);
  if (stream != nullptr && stream->capture) return Record(cudaErrorStreamCaptureUnsupported);
  callback(handle, cudaSuccess, data);
  return cudaSuccess;
}

}  // extern "C"
