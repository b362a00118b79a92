// Frames where a backend's memory is: core/frame.h for the host's, and without a way through the
// host for a device's.
//
// A frame in a device's memory carries no checksum, and what it says of itself is compared on the
// device with what this rank would have said: differences are counted in CudaStream::faults(), so
// that a step ends in an error. The layout of a payload of fixed size is this rank's own; of others
// the headers are read, with a wait for each.
#pragma once

#include <span>

#include "core/frame.h"
#include "kernels/backend.h"

namespace slimgrad {

// Writes what stands around the payload at FrameBody(memory), and returns the whole frame.
std::span<const std::byte> SealFrameOn(const Backend& backend, std::span<std::byte> memory,
                                       const Payload& payload, const FrameInfo& info);

// A frame of this rank, as it was sealed.
struct OwnFrame {
  PayloadView payload;
  std::span<const std::byte> frame;
};

// What `frame` holds, or kCorrupt or kMismatch as of OpenFrame. `fixed_size`: as the plan claims.
Result<PayloadView> OpenFrameOn(const Backend& backend, std::span<const std::byte> frame,
                                const FrameInfo& expected, const OwnFrame& own, bool fixed_size);

}  // namespace slimgrad
