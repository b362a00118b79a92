// The memory map.
#include "tools/ptxrun/machine/memory_map.h"

namespace ptx {

MemoryMap memory_map;

void MemoryMap::Add(const void* begin, u64 bytes, const char* kind, int device) {
  const std::lock_guard lock(mutex);
  const u64 address = reinterpret_cast<u64>(begin);
  ranges_[address] = {address + bytes, kind, device};
}

void MemoryMap::Remove(const void* begin) {
  const std::lock_guard lock(mutex);
  ranges_.erase(reinterpret_cast<u64>(begin));
}

bool MemoryMap::Find(u64 address, u64& begin, Range& range) {
  const std::lock_guard lock(mutex);
  return FindLocked(address, begin, range);
}

bool MemoryMap::Reaches(int device, u64 address, u64 bytes, u64& begin, u64& end) {
  const std::lock_guard lock(mutex);
  Range range{};
  if (!FindLocked(address, begin, range) || address + bytes > range.end) return false;
  end = range.end;
  return range.device < 0 || range.device == device || peer[device][range.device];
}

bool MemoryMap::FindLocked(u64 address, u64& begin, Range& range) const {
  auto found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return false;
  --found;
  const auto& [first, candidate] = *found;
  const bool empty = first == candidate.end;
  if (address >= candidate.end && !(empty && address == first)) return false;
  begin = first;
  range = candidate;
  return true;
}

}  // namespace ptx
