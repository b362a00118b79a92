// A device: its launches, the blocks and threads that run, and what its instructions share.
//
// machine.cc has launches and the scheduler, run.cc the loop over a thread's instructions, lane.cc
// operands, memory.cc addresses and their checks; instructions stand in exec_*.cc.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/ptxrun/machine/memory_map.h"
#include "tools/ptxrun/machine/races.h"
#include "tools/ptxrun/ptx/module.h"

namespace ptx {

extern int device_count;
// By the address that stands for a function in a kernel.
extern std::unordered_map<u64, Function*> functions_by_address;

struct Dim {
  u32 x = 1, y = 1, z = 1;
};

struct Options {
  int order = 0;  // of threads: 0 forward, 1 reverse, 2 random
  u64 seed = 1;
  bool race = true, stats = false;
  int sms = 4;
  int window = 3;               // blocks that run interleaved in order 2
  bool reverse_blocks = false;  // in order 1
  u64 limit = 5000000000U;      // instructions of a block
};

constexpr u32 kWarpSize = 32;
constexpr int kBarriers = 16;

struct Frame {
  Function* function = nullptr;
  int pc = 0;
  u32 first_register = 0;
  u64 local_base = 0;
  u8* params = nullptr;
  std::unique_ptr<u8[]> own_params;   // a kernel without calls uses the launch's
  const Instruction* call = nullptr;  // what it returns to
};

// A cp.async that has not arrived.
struct Copy {
  u8* to;
  const u8* from;
  u32 bytes, source_bytes;  // the rest is zeros
  const Instruction* ins;
  u32 group;
};

struct Thread {
  enum class State : u8 { kReady, kBarrier, kWarp, kDone };
  State state = State::kReady;
  u32 index = 0, lane = 0, warp = 0;
  Dim id{0, 0, 0};
  std::vector<Frame> frames;
  std::vector<u64> regs;  // of all frames
  u8* local = nullptr;
  bool carry = false;
  bool seen_hand_over = false;  // see races.h
  const Instruction* waiting = nullptr;
  // a warp operation's member mask and operands, while it waits
  u32 mask = 0;
  u64 a = 0, b = 0, c = 0;
  // the barrier it waits at, with the thread count and the predicate that it brought
  int barrier = 0;
  u32 barrier_count = 0;
  bool barrier_pred = false;
  std::vector<Copy> copies;
  u32 copy_group = 0;
};

// A bulk copy that has not arrived.
struct BulkCopy {
  u8* to;
  const u8* from;
  u32 bytes;
  u8* mbarrier;
  u32 thread;
  const Instruction* ins;
};

struct Block {
  Dim id{0, 0, 0};
  bool live = false;
  std::vector<Thread> threads;
  std::vector<u32> order;  // in which they run
  u32 alive = 0;
  std::vector<u32> parked, gone;  // a warp's lanes that wait in a warp operation, that are done
  u32 arrived[kBarriers] = {};    // bar.arrive
  std::vector<BulkCopy> bulk_copies;
  u8* shared = nullptr;
  u8* local = nullptr;
  ShadowMemory shadow;
  int idle = 0;  // passes in which nothing ran
  u64 steps = 0;
};

class Machine {
 public:
  static constexpr u64 kLocalBytes = u64{64} << 10;  // local memory of a thread
  static constexpr u64 kSharedMax = u64{1} << 20;

  // Runs a kernel to its end. Throws Error on a fault. One launch at a time: hold `mutex`.
  void Launch(Function* function, Dim grid, Dim block, const u8* arguments,
              u64 dynamic_shared_bytes, bool cooperative);

  std::mutex mutex;
  int device = 0;
  Options options;
  u64 instructions = 0;                    // instructions so far
  std::map<std::string, u64> histogram;    // by name, with options.stats
  std::vector<std::string> notes;          // races and the like, each once,
  std::map<std::string, int> note_counts;  // and how often

  // The rest is for instructions.

  Block& block() { return *block_; }
  bool IsShared(const u8* address) const {
    return static_cast<u64>(address - block_->shared) < shared_bytes_;
  }
  u64 shared_bytes() const { return shared_bytes_; }
  const std::string& KernelName() const { return kernel_->name; }

  [[noreturn]] void Fail(const Thread& thread, const Instruction& ins, const std::string& what);
  void Note(const Thread& thread, const Instruction& ins, const char* what);

  u64 SpecialValue(const Thread& thread, Special special) const;
  u64 AddressOf(const Frame& frame, const Symbol& symbol) const;
  void SetConstants(Thread& thread, const Frame& frame) const;

  // The host's address of `bytes` bytes at a kernel's address, after all checks. `value` is what a
  // write stores. Not for parameters.
  u8* Resolve(Thread& thread, const Instruction& ins, u64 address, Space space, unsigned bytes,
              Access access, const void* value);
  bool Reaches(u64 address, u64 bytes);
  bool IsLocalAddress(const Thread& thread, u64 address) const {
    return thread.local && address - reinterpret_cast<u64>(thread.local) < kLocalBytes;
  }
  bool IsSharedAddress(u64 address) const {
    return address - reinterpret_cast<u64>(block_->shared) < kSharedMax;
  }
  void StoreShared(Thread& thread, const Instruction& ins, u8* to, const u8* from, u32 bytes);

  // Ends the thread's warp operation if every lane of its mask is there.
  bool CompleteWarpOperation(Thread& thread);
  void Finish(Thread& thread);

 private:
  void PrepareLaunch(const u8* arguments, u64 dynamic_shared_bytes);
  void RunBlocks(u64 window);
  Dim BlockId(u64 index) const;
  void StartBlock(Dim id);
  void AllocateBlockMemory();
  void StartThread(u32 index);
  bool Step();
  void RunThread(Thread& thread, int budget);
  bool WakeActivemask();
  void ReleaseBarriers();
  void ReleaseBarrier(int barrier, const std::vector<Thread*>& waiting);
  bool AnyThread(Thread::State state) const;
  [[noreturn]] void FailDeadlock() const;
  [[noreturn]] void FailEndless() const;
  [[noreturn]] void FailShared(const Thread& thread, const Instruction& ins, u64 offset,
                               unsigned bytes);
  void CheckGlobal(const Thread& thread, const Instruction& ins, u64 address, unsigned bytes);
  void CheckGeneric(const Thread& thread, const Instruction& ins, u64 address, Space space,
                    unsigned bytes);
  void RecordShared(Thread& thread, const Instruction& ins, const u8* address, u64 bytes,
                    Access access, const void* value);

  std::vector<std::unique_ptr<Block>> blocks_;
  Block* block_ = nullptr;
  std::mt19937_64 random_;

  // of the launch
  Function* kernel_ = nullptr;
  Dim grid_, block_size_;
  bool cooperative_ = false;
  u64 dynamic_shared_bytes_ = 0, dynamic_offset_ = 0, shared_bytes_ = 0;
  std::vector<u8> params_;
  std::vector<u64> initial_regs_;
  // Cooperative groups' grid barrier; kernels find it in %envreg1 and 2.
  alignas(256) u32 grid_workspace_[64] = {};

  // The ranges of memory that were used last.
  struct Window {
    u64 begin = 1, end = 0;
  };
  Window windows_[4];
  unsigned recent_ = 0;
};

}  // namespace ptx
