// Stream capture: between cudaStreamBeginCapture and cudaStreamEndCapture, work that is issued to
// a stream becomes a node of a graph instead of running.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <set>
#include <thread>

#include "tools/ptxrun/runtime/graph.h"
#include "tools/ptxrun/runtime/process.h"
#include "tools/ptxrun/runtime/streams.h"

namespace ptxrun {

struct Capture {
  std::unique_ptr<Graph> graph;
  cudaStreamCaptureMode mode;
  Stream* origin;
  std::thread::id thread;     // that began it
  std::set<Stream*> streams;  // the origin, and those that joined through events
  std::uint64_t id;
  bool invalid = false;  // ends in an error whatever follows
};

// Runs work in a stream: now, or by the graph that the stream is captured into. `memory` is freed
// with that graph.
cudaError_t Issue(cudaStream_t handle, cudaGraphNodeType type, Work work,
                  std::shared_ptr<void> memory = nullptr);

// Whether a capture under way forbids calls that may synchronise; such a capture becomes invalid.
bool CaptureForbidsCall();

// Makes a call that CUDA forbids while a capture is under way.
template <class Call>
cudaError_t OutsideCapture(Call call) {
  return CaptureForbidsCall() ? Record(cudaErrorStreamCaptureUnsupported) : call();
}

}  // namespace ptxrun
