// From a kernel's address to the host's: bounds, alignment, the space, the device.
#include <cstdio>
#include <cstring>

#include "tools/ptxrun/machine/machine.h"
#include "tools/ptxrun/machine/values.h"

namespace ptx {

bool Machine::Reaches(u64 address, u64 bytes) {
  for (const Window& window : windows_)
    if (address >= window.begin && address + bytes <= window.end) return true;
  Window found;
  if (!memory_map.Reaches(device, address, bytes, found.begin, found.end)) return false;
  recent_ = (recent_ + 1) & 3;
  windows_[recent_] = found;
  return true;
}

void Machine::FailShared(const Thread& thread, const Instruction& ins, u64 offset, unsigned bytes) {
  Fail(thread, ins,
       "shared access out of bounds: offset " + std::to_string(offset) + " size " +
           std::to_string(bytes) + " of " + std::to_string(shared_bytes_));
}

void Machine::CheckGlobal(const Thread& thread, const Instruction& ins, u64 address,
                          unsigned bytes) {
  if (Reaches(address, bytes)) return;
  u64 begin = 0;
  Range range{};
  const bool exists = memory_map.Find(address, begin, range) && address + bytes <= range.end;
  char text[160];
  std::snprintf(text, sizeof text, "%s: address 0x%llx size %u",
                exists ? "access to memory of another device (no peer access)"
                       : "global access out of bounds",
                static_cast<unsigned long long>(address), bytes);
  Fail(thread, ins, text);
}

// Generic addresses of shared and local memory are the host's, so they are told apart by value.
void Machine::CheckGeneric(const Thread& thread, const Instruction& ins, u64 address, Space space,
                           unsigned bytes) {
  const bool global = space == Space::kGlobal;
  if (IsSharedAddress(address)) {
    if (global) Fail(thread, ins, "global access to a shared address");
    const u64 offset = address - reinterpret_cast<u64>(block_->shared);
    if (offset + bytes > shared_bytes_) FailShared(thread, ins, offset, bytes);
  } else if (IsLocalAddress(thread, address)) {
    const u64 offset = address - reinterpret_cast<u64>(thread.local);
    if (global || offset + bytes > kLocalBytes) Fail(thread, ins, "local access out of bounds");
  } else {
    CheckGlobal(thread, ins, address, bytes);
  }
}

u8* Machine::Resolve(Thread& thread, const Instruction& ins, u64 address, Space space,
                     unsigned bytes, Access access, const void* value) {
  u64 host = address;
  if (space == Space::kShared) {
    const u64 offset = static_cast<u32>(address);
    if (offset + bytes > shared_bytes_) FailShared(thread, ins, offset, bytes);
    host = reinterpret_cast<u64>(block_->shared) + offset;
  } else if (space == Space::kLocal) {
    if (address + bytes > kLocalBytes) Fail(thread, ins, "local access out of bounds");
    host = reinterpret_cast<u64>(thread.local) + address;
  } else {
    CheckGeneric(thread, ins, address, space, bytes);
  }
  if ((host & (bytes - 1)) != 0) Fail(thread, ins, "misaligned access");

  u8* const result = PointerTo<u8>(host);
  if (options.race && access != Access::kUnrecorded && IsShared(result)) {
    if (ins.is_volatile && access == Access::kRead) access = Access::kVolatileRead;
    if (ins.is_volatile && access == Access::kWrite) access = Access::kAtomicWrite;
    RecordShared(thread, ins, result, bytes, access, value);
  }
  return result;
}

void Machine::RecordShared(Thread& thread, const Instruction& ins, const u8* address, u64 bytes,
                           Access access, const void* value) {
  const ShadowMemory::Accessor by{thread.index, thread.warp, ins.acquire, &thread.seen_hand_over};
  const u64 offset = static_cast<u64>(address - block_->shared);
  const ShadowMemory::Counts counts = block_->shadow.Record(
      by, offset, bytes, access, static_cast<const u8*>(value), block_->shared);
  for (std::size_t k = 0; k < kFindings; k++)
    for (u32 times = counts[k]; times > 0; times--)
      Note(thread, ins, TextOf(static_cast<Finding>(k)));
}

// For copies that arrive later than they were issued.
void Machine::StoreShared(Thread& thread, const Instruction& ins, u8* to, const u8* from,
                          u32 bytes) {
  if (options.race) RecordShared(thread, ins, to, bytes, Access::kWrite, nullptr);
  std::memcpy(to, from, bytes);
}

}  // namespace ptx
