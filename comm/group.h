// The ranks that average gradients together, and the two ways in which their bytes meet.
//
// A Group object holds one or more of the ranks ("local" ones): a lock-step group holds all of them
// and runs them on one thread, a threads group holds one a thread. Every rank calls the same
// functions in the same order. All results are bit for bit the same in every implementation. After
// an error the group is unusable.
//
// Threads: one thread at a time on an object.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "comm/traffic.h"
#include "core/buffer.h"
#include "core/status.h"
#include "kernels/backend.h"
#include "kernels/combine.h"

namespace slimgrad {

using Bytes = std::span<const std::byte>;

// Alignment of what AllGather hands out: a frame can be read where it lies.
inline constexpr std::size_t kMessageAlignment = 16;

class Group {
 public:
  virtual ~Group() = default;

  virtual int size() const = 0;

  // Whether messages may lie in this backend's memory, written on its stream. The host's are taken
  // always, by AllGather.
  virtual bool TakesMessagesOn(const Backend& backend) const {
    return backend.device == Device::kCpu;
  }

  // The ranks of this object, ascending; never empty.
  virtual std::span<const int> local_ranks() const = 0;

  // Every rank's message in rank order, each aligned to kMessageAlignment; lengths may differ.
  // mine[l] is the message of local_ranks()[l], itself aligned so. The views hold until the next
  // call on this object, or until `mine` changes. Traffic: a rank sends its message to each other
  // rank.
  virtual Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                                   TrafficRow& traffic) = 0;

  // result = Combine(op, dtype) over all ranks' values. mine[l] and result have one size on all
  // ranks; result overlaps none of mine. Traffic: reduce-scatter and all-gather over near-equal
  // runs of elements (ChunkOf): a rank sends every other rank's chunk to its owner, then its own
  // combined chunk to every other rank.
  virtual Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                            std::span<std::byte> result, TrafficRow& traffic) = 0;

  // Whether, after an error, the transport still uses memory of the call that failed: then `mine`
  // and `result` of that call may be read and written as long as the process lives, and must not be
  // freed (Abandon).
  virtual bool HoldsMemory() { return false; }
};

// Never frees a buffer.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)
template <class T>
void Abandon(Buffer<T> buffer) {
  static_cast<void>(std::make_unique<Buffer<T>>(std::move(buffer)).release());
}
// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

// The elements that `rank` owns of `count`: [begin, end). The first count % size ranks own one
// more.
struct Chunk {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};
Chunk ChunkOf(std::size_t count, int size, int rank);

// Adds what the two calls above cost each of `ranks`, in bytes: the formulas that implementations
// are tested against. Time is linear in messages and ranks, so that a simulation can have many.
void CountAllGather(std::span<const Bytes> messages, std::span<const int> ranks,
                    TrafficRow& traffic);
void CountAllCombine(std::size_t count, std::size_t element_bytes, int size,
                     std::span<const int> ranks, TrafficRow& traffic);

}  // namespace slimgrad
