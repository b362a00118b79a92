// Events: marks in captures, and host times outside of them.
#include <cuda_runtime_api.h>

#include <chrono>
#include <mutex>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/handles.h"
#include "tools/ptxrun/runtime/process.h"
#include "tools/ptxrun/runtime/streams.h"

namespace ptxrun {
namespace {

double NowMilliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

}  // namespace
}  // namespace ptxrun

using ptxrun::Event;
using ptxrun::FindStream;
using ptxrun::FromHandle;
using ptxrun::Record;
using ptxrun::Stream;
using ptxrun::TheProcess;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  auto* event = new Event;
  event->flags = flags;
  *handle = ptxrun::ToHandle(event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  delete FromHandle(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  if (ptxrun::IsUnknown(stream_handle)) return Record(cudaErrorInvalidResourceHandle);
  Event& event = *FromHandle(handle);
  const Stream* stream = FindStream(stream_handle);
  if (stream != nullptr && stream->capture) {
    event.capture = stream->capture;
    event.tips = stream->tips;
    return cudaSuccess;
  }
  event.capture = nullptr;
  event.milliseconds = ptxrun::NowMilliseconds();
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle,
                                     unsigned flags) {
  const Stream* stream = FindStream(stream_handle);
  const bool external = flags != 0;  // seen by those outside of the capture, at each launch
  if (!external || stream == nullptr || !stream->capture)
    return cudaEventRecord(handle, stream_handle);
  return ptxrun::Issue(stream_handle, cudaGraphNodeTypeEventRecord, [=] {
    FromHandle(handle)->milliseconds = ptxrun::NowMilliseconds();
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const Event& event = *FromHandle(handle);
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  if (event.capture && process.captures.contains(event.capture)) {
    event.capture->invalid = true;
    return Record(cudaErrorCapturedEvent);
  }
  return Record(process.sticky_error);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) { return cudaEventSynchronize(handle); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const Event& first = *FromHandle(from);
  const Event& last = *FromHandle(to);
  const bool timed = ((first.flags | last.flags) & cudaEventDisableTiming) == 0;
  if (!timed || first.milliseconds < 0 || last.milliseconds < 0)
    return Record(cudaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>(last.milliseconds - first.milliseconds);
  return cudaSuccess;
}

}  // extern "C"
