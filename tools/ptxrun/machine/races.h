// Who last read and wrote each byte of a block's shared memory: finds races and reads of what
// nobody wrote.
//
// Cautious: a barrier orders all threads of the block, __syncwarp those of its warp, and so does
// an acquired hand-over through an atomic or volatile word (which may hide a race and reports no
// false one). A store of the value that is there already is no race.
#pragma once

#include <array>
#include <vector>

#include "tools/ptxrun/ptx/types.h"

namespace ptx {

enum class Access : u8 { kRead, kWrite, kAtomicWrite, kVolatileRead, kUnrecorded };

enum class Finding : u8 { kUninitialised, kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead };
constexpr std::size_t kFindings = 4;
const char* TextOf(Finding finding);

class ShadowMemory {
 public:
  using Counts = std::array<u32, kFindings>;
  struct Accessor {
    u32 thread, warp;
    bool acquire;          // of the instruction
    bool* seen_hand_over;  // of the thread: its next fence orders as a barrier does
  };

  // For a new block. Entries of the block before are dropped as they are met.
  void Restart(u64 bytes, u32 warps);
  void OrderBlock() { epoch_++; }
  void OrderWarp(u32 warp) { warp_epochs_[warp]++; }

  // Counts what an access to [offset, offset + bytes) finds. `value`, if not null, is what it
  // stores over `shared`.
  Counts Record(const Accessor& by, u64 offset, u64 bytes, Access access, const u8* value,
                const u8* shared);

 private:
  struct Touch {
    u32 thread = ~0U, epoch = 0, warp_epoch = 0;
    bool atomic = false;  // or volatile
  };
  // An aligned word has one entry, its first byte's, until a part of it is accessed alone.
  struct Entry {
    u32 generation = 0;
    bool initialised = false, split = false;
    Touch write, read, other_read;  // the last read, and the last by another thread before it
  };

  bool Unordered(const Accessor& by, const Touch& touch) const;
  void RecordEntry(const Accessor& by, Entry& entry, Access access, bool same, Counts& counts);
  void RecordRead(const Accessor& by, Entry& entry, Access access, Counts& counts);
  void RecordWrite(const Accessor& by, Entry& entry, Access access, bool same, Counts& counts);
  bool HandOver(const Accessor& by, Entry& entry, Access access);

  std::vector<Entry> entries_;
  std::vector<u32> warp_epochs_;
  u32 epoch_ = 1, generation_ = 0;
};

}  // namespace ptx
