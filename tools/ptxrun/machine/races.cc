// The shadow of shared memory.
#include "tools/ptxrun/machine/races.h"

#include <cstring>

namespace ptx {

const char* TextOf(Finding finding) {
  switch (finding) {
    case Finding::kUninitialised: return "UNINITIALISED shared read";
    case Finding::kReadAfterWrite: return "RACE shared read after write";
    case Finding::kWriteAfterWrite: return "RACE shared write after write";
    default: return "RACE shared write after read";
  }
}

namespace {

void Count(Finding finding, ShadowMemory::Counts& counts) {
  counts[static_cast<std::size_t>(finding)]++;
}

}  // namespace

void ShadowMemory::Restart(u64 bytes, u32 warps) {
  epoch_ = 1;
  generation_++;
  warp_epochs_.assign(warps, 1);
  if (entries_.size() < bytes + 4) entries_.resize(bytes + 4);
}

bool ShadowMemory::Unordered(const Accessor& by, const Touch& touch) const {
  return touch.thread != ~0U && touch.thread != by.thread && touch.epoch == epoch_ &&
         (touch.thread / 32 != by.warp || touch.warp_epoch == warp_epochs_[by.warp]);
}

// True if everything before is ordered by this access, so that there is nothing to find.
bool ShadowMemory::HandOver(const Accessor& by, Entry& entry, Access access) {
  if (access != Access::kAtomicWrite && access != Access::kVolatileRead) return false;
  if (!entry.write.atomic || entry.write.thread == by.thread) return false;
  if (!by.acquire) {
    if (access == Access::kVolatileRead) *by.seen_hand_over = true;
    return false;
  }
  entry.other_read = entry.read;
  entry.read = {by.thread, epoch_, warp_epochs_[by.warp], true};
  if (access == Access::kAtomicWrite) {
    entry.write = {by.thread, epoch_ + 1, warp_epochs_[by.warp], true};
    entry.initialised = true;
  }
  OrderBlock();
  return true;
}

void ShadowMemory::RecordRead(const Accessor& by, Entry& entry, Access access, Counts& counts) {
  const bool is_volatile = access == Access::kVolatileRead;
  if (!entry.initialised) Count(Finding::kUninitialised, counts);
  if (Unordered(by, entry.write) && !(is_volatile && entry.write.atomic))
    Count(Finding::kReadAfterWrite, counts);
  if (entry.read.thread != by.thread) entry.other_read = entry.read;
  entry.read = {by.thread, epoch_, warp_epochs_[by.warp], is_volatile};
}

void ShadowMemory::RecordWrite(const Accessor& by, Entry& entry, Access access, bool same,
                               Counts& counts) {
  const bool atomic = access == Access::kAtomicWrite;
  const auto races = [&](const Touch& touch) {
    return !same && Unordered(by, touch) && !(atomic && touch.atomic);
  };
  if (races(entry.write)) Count(Finding::kWriteAfterWrite, counts);
  if (races(entry.read) || races(entry.other_read)) Count(Finding::kWriteAfterRead, counts);
  const u32 warp_epoch = warp_epochs_[by.warp];
  // An atomic after the thread's own plain store hands nothing over that was not there before.
  const bool own_plain = entry.write.thread == by.thread && entry.write.epoch == epoch_ &&
                         entry.write.warp_epoch == warp_epoch && !entry.write.atomic;
  entry.write = {by.thread, epoch_, warp_epoch, atomic && !own_plain};
  entry.initialised = true;
}

void ShadowMemory::RecordEntry(const Accessor& by, Entry& entry, Access access, bool same,
                               Counts& counts) {
  if (HandOver(by, entry, access)) return;
  if (access == Access::kRead || access == Access::kVolatileRead)
    RecordRead(by, entry, access, counts);
  else
    RecordWrite(by, entry, access, same, counts);
}

ShadowMemory::Counts ShadowMemory::Record(const Accessor& by, u64 offset, u64 bytes, Access access,
                                          const u8* value, const u8* shared) {
  Counts counts{};
  for (u64 at = offset; at < offset + bytes;) {
    const u64 word = at & ~u64{3};
    Entry& first = entries_[word];
    if (first.generation != generation_) {
      first = Entry{};
      first.generation = generation_;
    }
    const bool whole = !first.split && at == word && offset + bytes - at >= 4;
    if (!whole && !first.split) {
      first.split = true;
      for (u64 k = 1; k < 4; k++) entries_[word + k] = first;
    }
    const u64 step = whole ? 4 : 1;
    const bool same = value && std::memcmp(shared + at, value + (at - offset), step) == 0;
    RecordEntry(by, entries_[at], access, same, counts);
    at += step;
  }
  return counts;
}

}  // namespace ptx
