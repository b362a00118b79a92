// The rules of stream capture, and the calls that begin, join and end one.
#include "tools/ptxrun/runtime/capture.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "tools/ptxrun/runtime/handles.h"

namespace ptxrun {
namespace {

bool Forbids(const Capture& capture, cudaStreamCaptureMode caller_mode) {
  if (capture.mode == cudaStreamCaptureModeGlobal && caller_mode == cudaStreamCaptureModeGlobal)
    return true;
  return capture.mode != cudaStreamCaptureModeRelaxed &&
         capture.thread == std::this_thread::get_id();
}

// The legacy stream waits for blocking streams, which one that is being captured cannot grant.
bool LegacyStreamMeets(const Capture& capture) {
  if (capture.mode == cudaStreamCaptureModeRelaxed) return false;
  return std::any_of(capture.streams.begin(), capture.streams.end(), [](const Stream* stream) {
    return (stream->flags & cudaStreamNonBlocking) == 0;
  });
}

bool LegacyStreamIsBarred() {
  Process& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const auto met = std::find_if(process.captures.begin(), process.captures.end(),
                                [](const auto& capture) { return LegacyStreamMeets(*capture); });
  if (met == process.captures.end()) return false;
  (*met)->invalid = true;
  return true;
}

// How many nodes come before the stream's next one.
std::size_t NodesBefore(const Stream& stream, const Graph& graph) {
  std::vector<int> left = stream.tips;
  std::set<int> seen;
  while (!left.empty()) {
    const int id = left.back();
    left.pop_back();
    if (!seen.insert(id).second) continue;
    const auto& before = graph.nodes[static_cast<std::size_t>(id)]->dependencies;
    left.insert(left.end(), before.begin(), before.end());
  }
  return seen.size();
}

cudaError_t Invalidate(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return Record(error);
}

// A stream that waits for a captured event joins the event's capture.
void Join(Stream& stream, const Event& event) {
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.capture->streams.insert(&stream);
    stream.tips = event.tips;
    return;
  }
  for (const int tip : event.tips) {
    if (std::find(stream.tips.begin(), stream.tips.end(), tip) == stream.tips.end())
      stream.tips.push_back(tip);
  }
}

}  // namespace

bool CaptureForbidsCall() {
  Process& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const cudaStreamCaptureMode caller_mode = ThisThread().capture_mode;
  if (caller_mode == cudaStreamCaptureModeRelaxed) return false;
  bool forbidden = false;
  for (const auto& capture : process.captures) {
    if (!Forbids(*capture, caller_mode)) continue;
    capture->invalid = true;
    forbidden = true;
  }
  return forbidden;
}

cudaError_t Issue(cudaStream_t handle, cudaGraphNodeType type, Work work,
                  std::shared_ptr<void> memory) {
  if (IsUnknown(handle)) return Record(cudaErrorInvalidResourceHandle);
  Stream* stream = FindStream(handle);
  if (stream == nullptr && LegacyStreamIsBarred()) return Record(cudaErrorStreamCaptureImplicit);
  if (stream == nullptr || !stream->capture) return Record(work());
  const std::lock_guard lock(TheProcess().mutex);
  if (stream->capture->invalid) return Record(cudaErrorStreamCaptureInvalidated);
  Graph& graph = *stream->capture->graph;
  stream->tips = {graph.Add(type, std::move(work), stream->tips)};
  if (memory) graph.memory.push_back(std::move(memory));
  return cudaSuccess;
}

}  // namespace ptxrun

using ptxrun::Capture;
using ptxrun::FindStream;
using ptxrun::Invalidate;
using ptxrun::Record;
using ptxrun::Stream;
using ptxrun::TheProcess;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Record(cudaErrorStreamCaptureUnsupported);
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  if (stream->capture) return Record(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->graph = std::make_unique<ptxrun::Graph>();
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->streams.insert(stream);
  capture->id = process.next_id++;
  process.captures.insert(capture);
  stream->capture = std::move(capture);
  stream->tips.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  Stream* stream = FindStream(handle);
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  if (stream == nullptr || !stream->capture || stream->capture->origin != stream)
    return Record(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return Record(cudaErrorStreamCaptureWrongThread);
  const bool joined = ptxrun::NodesBefore(*stream, *capture->graph) == capture->graph->nodes.size();
  process.captures.erase(capture);
  for (Stream* member : capture->streams) {
    member->capture = nullptr;
    member->tips.clear();
  }
  // Events may keep the capture, but not what it made.
  std::unique_ptr<ptxrun::Graph> made = std::move(capture->graph);
  if (capture->invalid) return Record(cudaErrorStreamCaptureInvalidated);
  if (!joined) return Record(cudaErrorStreamCaptureUnjoined);
  *graph = ptxrun::ToHandle(made.release());
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  if (ptxrun::IsUnknown(handle)) return Record(cudaErrorInvalidResourceHandle);
  const ptxrun::Event& event = *ptxrun::FromHandle(event_handle);
  Stream* stream = FindStream(handle);
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  if (!event.capture) {
    if (stream != nullptr && stream->capture)
      return Invalidate(*stream->capture, cudaErrorStreamCaptureIsolation);
    return cudaSuccess;  // what the event stands for has run
  }
  if (!process.captures.contains(event.capture)) return Record(cudaErrorStreamCaptureIsolation);
  if (stream == nullptr) return Invalidate(*event.capture, cudaErrorStreamCaptureImplicit);
  if (stream->capture && stream->capture != event.capture) {
    stream->capture->invalid = true;
    return Invalidate(*event.capture, cudaErrorStreamCaptureMerge);
  }
  ptxrun::Join(*stream, event);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Stream* stream = FindStream(handle);
  if (stream == nullptr || !stream->capture) {
    *status = cudaStreamCaptureStatusNone;
  } else {
    *status = stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  }
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  cudaStreamIsCapturing(handle, status);
  if (*status != cudaStreamCaptureStatusActive) {
    if (count != nullptr) *count = 0;
    return cudaSuccess;
  }
  const Stream& stream = *FindStream(handle);
  const Capture& capture = *stream.capture;
  thread_local std::vector<cudaGraphNode_t> tips;  // valid until the thread's next such call
  tips.clear();
  for (const int id_of_tip : stream.tips)
    tips.push_back(
        ptxrun::ToHandle(capture.graph->nodes[static_cast<std::size_t>(id_of_tip)].get()));
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) *graph = ptxrun::ToHandle(capture.graph.get());
  if (dependencies != nullptr) *dependencies = tips.data();
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = tips.size();
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, ptxrun::ThisThread().capture_mode);
  return cudaSuccess;
}

}  // extern "C"
