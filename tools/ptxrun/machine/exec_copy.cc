// Copies that arrive later: cp.async and the bulk copy, with the mbarrier that counts its bytes.
// A copy arrives at its wait and no sooner, so that a missing wait shows; in order 1, at once.
#include <cstring>

#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

bool IsPowerOfTwo(u32 n) { return (n & (n - 1)) == 0; }

// A source shorter than the copy has no alignment if its size is no power of two.
const u8* CopySource(Lane& lane, u64 address, u32 bytes) {
  if (bytes == 0) return nullptr;
  const auto resolve = [&](u64 at, u32 size) {
    return lane.machine.Resolve(lane.thread, lane.ins, at, Space::kGlobal, size,
                                Access::kUnrecorded, nullptr);
  };
  if (IsPowerOfTwo(bytes)) return resolve(address, bytes);
  for (u32 k = 1; k < bytes; k++) resolve(address + k, 1);
  return resolve(address, 1);
}

Flow StartCopy(Lane& lane) {
  Thread& thread = lane.thread;
  const u32 bytes = lane.Get32(2), source_bytes = lane.Count() > 3 ? lane.Get32(3) : bytes;
  if (bytes != 4 && bytes != 8 && bytes != 16) lane.Fail("cp.async size");
  if (source_bytes > bytes) lane.Fail("cp.async source size");
  u8* const to = lane.machine.Resolve(thread, lane.ins, lane.Address(lane.At(0)), Space::kShared,
                                      bytes, Access::kUnrecorded, nullptr);
  const u8* const from = CopySource(lane, lane.Address(lane.At(1)), source_bytes);
  thread.copies.push_back({to, from, bytes, source_bytes, &lane.ins, thread.copy_group});
  if (lane.machine.options.order == 1) LandCopies(lane.machine, thread, kAllCopies);
  return Flow::kNext;
}

Flow CpAsync(Lane& lane) {
  const auto& modifiers = lane.ins.modifiers;
  if (modifiers.size() < 2 || modifiers[0] != "async") lane.Unsupported();
  if (modifiers[1] == "ca" || modifiers[1] == "cg") return StartCopy(lane);
  if (modifiers[1] == "commit_group")
    lane.thread.copy_group++;
  else if (modifiers[1] == "wait_all")
    LandCopies(lane.machine, lane.thread, kAllCopies);
  else if (modifiers[1] == "wait_group")
    LandCopies(lane.machine, lane.thread, lane.Get32(0));
  else
    lane.Unsupported();
  return Flow::kNext;
}

Flow CpBulk(Lane& lane) {
  Machine& machine = lane.machine;
  const u32 bytes = lane.Get32(2);
  if (bytes % 16 != 0) lane.Fail("bulk copy size is not a multiple of 16");
  u8* const mbarrier = machine.Resolve(lane.thread, lane.ins, lane.Address(lane.At(3)),
                                       Space::kShared, 8, Access::kAtomicWrite, nullptr);
  if (bytes == 0) return Flow::kNext;
  const u64 to = static_cast<u32>(lane.Address(lane.At(0))), from = lane.Address(lane.At(1));
  if (to % 16 != 0 || from % 16 != 0) lane.Fail("misaligned bulk copy");
  if (to + bytes > machine.shared_bytes()) lane.Fail("shared access out of bounds: bulk copy");
  if (!machine.Reaches(from, bytes))
    lane.Fail("global access out of bounds: bulk copy of " + std::to_string(bytes) + " bytes");
  Block& block = machine.block();
  block.bulk_copies.push_back({block.shared + to, PointerTo<const u8>(from), bytes, mbarrier,
                               lane.thread.index, &lane.ins});
  if (machine.options.order == 1) LandBulkCopies(machine, mbarrier);
  return Flow::kNext;
}

// An mbarrier's eight bytes, from the lowest bit.
struct MbarrierWord {
  u64 phase : 1;
  u64 pending : 20;   // arrivals that the phase still needs
  u64 expected : 20;  // arrivals of a phase
  u64 bytes : 23;     // that are to come, plus kNoBytes: they may come before they are announced
};
constexpr i64 kNoBytes = i64{1} << 22;
constexpr u32 kMostArrivals = (1U << 20) - 1;

MbarrierWord Read(const u8* mbarrier) {
  MbarrierWord word{};
  std::memcpy(&word, mbarrier, sizeof word);
  return word;
}

void InitMbarrier(const Lane& lane, u8* mbarrier) {
  const u32 count = lane.Get32(1);
  if (count == 0 || count > kMostArrivals) lane.Fail("mbarrier count");
  MbarrierWord word{};
  word.pending = word.expected = count;
  word.bytes = static_cast<u64>(kNoBytes);
  std::memcpy(mbarrier, &word, sizeof word);
}

// An arrival's token is the phase it arrived in, and a parity is one too: both waits end when the
// barrier is in another phase.
Flow WaitMbarrier(Lane& lane, u8* mbarrier) {
  LandBulkCopies(lane.machine, mbarrier);
  const bool done = Read(mbarrier).phase != (lane.Get(2) & 1);
  lane.Set(0, done);
  return done ? Flow::kNext : Flow::kStop;
}

Flow OnMbarrier(Lane& lane) {
  const Mbarrier kind = lane.ins.mbarrier;
  const bool first_is_result =
      kind != Mbarrier::kInit && kind != Mbarrier::kInval && kind != Mbarrier::kExpectTx;
  const bool is_plain = kind == Mbarrier::kInit || kind == Mbarrier::kInval;
  Machine& machine = lane.machine;
  u8* const mbarrier = lane.Memory(lane.At(first_is_result ? 1 : 0), 8,
                                   is_plain ? Access::kWrite : Access::kAtomicWrite);
  if (!machine.IsShared(mbarrier)) lane.Fail("mbarrier outside shared memory");
  const u64 phase = Read(mbarrier).phase;
  switch (kind) {
    case Mbarrier::kInit: InitMbarrier(lane, mbarrier); break;
    case Mbarrier::kInval: std::memset(mbarrier, 0xff, 8); break;
    case Mbarrier::kArrive:
      AdvanceMbarrier(machine, mbarrier, lane.Count() > 2 ? lane.Get32(2) : 1, 0);
      lane.Set(0, phase);
      break;
    case Mbarrier::kArriveExpectTx:
      AdvanceMbarrier(machine, mbarrier, 0, lane.Get32(2));
      AdvanceMbarrier(machine, mbarrier, 1, 0);
      lane.Set(0, phase);
      break;
    case Mbarrier::kExpectTx: AdvanceMbarrier(machine, mbarrier, 0, lane.Get32(1)); break;
    default: return WaitMbarrier(lane, mbarrier);
  }
  return Flow::kNext;
}

}  // namespace

void LandCopies(Machine& machine, Thread& thread, u32 keep) {
  std::vector<Copy> late;
  for (const Copy& copy : thread.copies) {
    if (keep != kAllCopies && copy.group + keep >= thread.copy_group) {
      late.push_back(copy);
      continue;
    }
    u8 bytes[16] = {};
    if (copy.source_bytes > 0) std::memcpy(bytes, copy.from, copy.source_bytes);
    machine.StoreShared(thread, *copy.ins, copy.to, bytes, copy.bytes);
  }
  thread.copies = std::move(late);
}

void LandBulkCopies(Machine& machine, u8* mbarrier) {
  Block& block = machine.block();
  const std::vector<BulkCopy> copies = std::move(block.bulk_copies);
  block.bulk_copies.clear();
  for (const BulkCopy& copy : copies) {
    if (copy.mbarrier != mbarrier) {
      block.bulk_copies.push_back(copy);
      continue;
    }
    machine.StoreShared(block.threads[copy.thread], *copy.ins, copy.to, copy.from, copy.bytes);
    AdvanceMbarrier(machine, mbarrier, 0, -static_cast<i64>(copy.bytes));
  }
}

void AdvanceMbarrier(Machine& machine, u8* mbarrier, i64 arrivals, i64 bytes) {
  MbarrierWord word = Read(mbarrier);
  const i64 to_come = static_cast<i64>(word.bytes) - kNoBytes + bytes;
  if (static_cast<i64>(word.pending) < arrivals || to_come < -kNoBytes || to_come >= kNoBytes)
    throw Error("mbarrier: more arrivals or bytes than it holds, or not initialised, in kernel " +
                machine.KernelName());
  word.pending -= static_cast<u64>(arrivals);
  word.bytes = static_cast<u64>(to_come + kNoBytes);
  if (word.pending == 0 && to_come == 0) {
    word.phase ^= 1;
    word.pending = word.expected;
    machine.block().shadow.OrderBlock();
  }
  std::memcpy(mbarrier, &word, sizeof word);
}

Handler CopyHandler(Op op) {
  switch (op) {
    case Op::kCpAsync: return CpAsync;
    case Op::kCpBulk: return CpBulk;
    case Op::kMbarrier: return OnMbarrier;
    default: return nullptr;
  }
}

}  // namespace ptx
