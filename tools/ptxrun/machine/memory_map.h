// Which addresses kernels may touch: one map for the process, from allocations, module variables,
// parameters and registered host memory.
#pragma once

#include <map>
#include <mutex>

#include "tools/ptxrun/ptx/types.h"

namespace ptx {

constexpr int kMaxDevices = 16;

struct Range {
  u64 end;
  const char* kind;
  int device;  // -1: every device reaches it
};

class MemoryMap {
 public:
  void Add(const void* begin, u64 bytes, const char* kind, int device);
  void Remove(const void* begin);
  // The range that holds the address, or that is empty and begins there. `begin` and `range` are
  // written only if there is one.
  bool Find(u64 address, u64& begin, Range& range);
  // The same, if the device may access all of [address, address + bytes).
  bool Reaches(int device, u64 address, u64 bytes, u64& begin, u64& end);

  std::mutex mutex;                          // guards everything
  bool peer[kMaxDevices][kMaxDevices] = {};  // [d][e]: d may access e's memory

 private:
  bool FindLocked(u64 address, u64& begin, Range& range) const;
  std::map<u64, Range> ranges_;  // by their beginning
};

extern MemoryMap memory_map;

}  // namespace ptx
