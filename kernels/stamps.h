// What stands around the sections of a frame (core/frame.h, FrameStamps), written and compared in
// memory that the host cannot reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/payload.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// Writes each stamp at its place. All lie within `frame` (CHECKed).
void WriteStamps(const Backend& backend, const Stamps& stamps, std::span<std::byte> frame);

// Adds to *wrong, on the backend's device, how many of the stamps `frame` has otherwise.
void CheckStamps(const Backend& backend, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong);

SLIMGRAD_KERNEL(WriteStamps);
SLIMGRAD_KERNEL(CheckStamps);

}  // namespace slimgrad::kernels
