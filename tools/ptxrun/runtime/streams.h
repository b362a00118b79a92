// Streams and events. Work runs at the call that issues it, so a stream is an order only to
// captures.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace ptxrun {

struct Capture;

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  std::shared_ptr<Capture> capture;  // under way in this stream
  std::vector<int> tips;             // the captured nodes that the stream's next one comes after
};

struct Event {
  double milliseconds = -1;  // when it was recorded; negative: not yet
  unsigned flags = 0;
  std::shared_ptr<Capture> capture;  // in which it was recorded last
  std::vector<int> tips;             // of its stream at that time
};

// The stream of a handle; null for the legacy stream. A handle that is none counts as the legacy
// stream, with a complaint.
Stream* FindStream(cudaStream_t handle);

bool IsUnknown(cudaStream_t handle);

// The device that a stream's work runs on: its own, or the calling thread's.
int DeviceOf(const Stream* stream);

}  // namespace ptxrun
