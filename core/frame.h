// The header in front of a payload that travels whole (a gathered round). docs/wire_format.md is
// normative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/payload.h"
#include "core/status.h"

namespace slimgrad {

inline constexpr std::size_t kFrameHeaderBytes = 48;
inline constexpr std::uint16_t kFrameVersion = 1;

// What both ends must agree on.
struct FrameInfo {
  std::uint64_t spec_hash = 0;  // of the compressor's canonical spec text
  std::uint64_t numel = 0;      // elements of the tensor
  std::uint64_t step = 0;
  std::uint8_t round = 0;
  bool operator==(const FrameInfo&) const = default;
};

struct Frame {
  FrameInfo info;
  PayloadView payload;
  std::size_t bytes = 0;  // of the whole frame: where the next one in a bucket begins
};

// A payload is written at FrameBody(memory); SealFrame then writes the header in front of it and
// returns the whole frame. `memory` is aligned to 16.
std::span<std::byte> FrameBody(std::span<std::byte> memory);
std::span<const std::byte> SealFrame(std::span<std::byte> memory, const Payload& payload,
                                     const FrameInfo& info);

// The same for a frame in a device's memory: what is to be written at which place around the
// sections of `payload`, which lie in `frame`, its whole memory. kernels/stamps.h writes it. The
// checksum is 0, which only devices take from each other: hashing is for the host.
Stamps FrameStamps(const PayloadView& payload, std::span<const std::byte> frame,
                   const FrameInfo& info);

// Reads the frame at the start of `bytes`, which may hold more and is aligned to 16 (CHECKed), as a
// bucket of frames is at each of them. kCorrupt for damage of any kind.
Result<Frame> ReadFrame(std::span<const std::byte> bytes);

// As above, for a buffer of exactly one frame that must carry `expected`: else kMismatch, which
// names the field.
Result<PayloadView> OpenFrame(std::span<const std::byte> bytes, const FrameInfo& expected);

}  // namespace slimgrad
