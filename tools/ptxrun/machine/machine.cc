// Launches, and the scheduler: threads run in turn, each until it waits or its budget ends.
#include "tools/ptxrun/machine/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

namespace ptx {

int device_count = 1;
std::unordered_map<u64, Function*> functions_by_address;

namespace {

// What nobody has written: in registers, and in shared memory.
constexpr u64 kUnwritten = 0xA5A5A5A5A5A5A5A5U;
constexpr u32 kMostThreads = 1024;

std::string PlaceOf(const char* format, const Dim& block, u32 last) {
  char text[120];
  std::snprintf(text, sizeof text, format, block.x, block.y, block.z, last);
  return text;
}

}  // namespace

void Machine::Fail(const Thread& thread, const Instruction& ins, const std::string& what) {
  char place[400];
  std::snprintf(
      place, sizeof place,
      "\n  kernel %s block (%u,%u,%u) thread (%u,%u,%u), PTX line %d: ", kernel_->name.c_str(),
      block_->id.x, block_->id.y, block_->id.z, thread.id.x, thread.id.y, thread.id.z, ins.line);
  throw Error(what + place + ins.text);
}

void Machine::Note(const Thread& thread, const Instruction& ins, const char* what) {
  const std::string note = std::string(what) + " @" + kernel_->name + " PTX line " +
                           std::to_string(ins.line) + " " + ins.text;
  if (note_counts[note]++ > 0) return;
  notes.push_back(note + PlaceOf(" (first: block %u,%u,%u thread %u)", block_->id, thread.index));
}

void Machine::Launch(Function* function, Dim grid, Dim block, const u8* arguments,
                     u64 dynamic_shared_bytes, bool cooperative) {
  kernel_ = function;
  grid_ = grid;
  block_size_ = block;
  cooperative_ = cooperative;
  if (function->cluster) throw Error("clusters are unsupported: " + function->name);
  const u32 threads = block.x * block.y * block.z;
  if (threads > static_cast<u32>(function->max_threads))
    throw Error("block of " + std::to_string(threads) + " threads exceeds maxntid of " +
                function->name);
  PrepareLaunch(arguments, dynamic_shared_bytes);

  const u64 blocks = u64{grid.x} * grid.y * grid.z;
  const u64 interleaved =
      options.order == 2 ? std::min<u64>(blocks, static_cast<u64>(options.window)) : 1;
  memory_map.Add(params_.data(), function->ArgumentBytes(), "param", device);
  memory_map.Add(grid_workspace_, sizeof grid_workspace_, "grid", device);
  const auto end = [&] {
    for (const auto& each : blocks_) each->live = false;
    memory_map.Remove(params_.data());
    memory_map.Remove(grid_workspace_);
  };
  try {
    RunBlocks(cooperative ? blocks : interleaved);
  } catch (...) {
    end();
    throw;
  }
  end();
}

void Machine::PrepareLaunch(const u8* arguments, u64 dynamic_shared_bytes) {
  dynamic_shared_bytes_ = dynamic_shared_bytes;
  dynamic_offset_ = RoundUp(kernel_->static_shared_bytes, 128);
  shared_bytes_ = dynamic_shared_bytes > 0 ? dynamic_offset_ + dynamic_shared_bytes
                                           : kernel_->static_shared_bytes;
  if (shared_bytes_ > kSharedMax) throw Error("shared size");

  const u64 argument_bytes = kernel_->ArgumentBytes();
  params_.assign(argument_bytes + 64, 0);
  if (argument_bytes > 0) std::memcpy(params_.data(), arguments, argument_bytes);

  // Those that do not depend on the thread; StartThread copies them.
  Frame frame;
  frame.function = kernel_;
  initial_regs_.assign(kernel_->slots + 1, kUnwritten);
  for (const Constant& constant : kernel_->constants) {
    if (constant.from == Constant::From::kImmediate)
      initial_regs_[constant.slot] = constant.value;
    else if (constant.from == Constant::From::kSymbol)
      initial_regs_[constant.slot] = AddressOf(frame, *constant.symbol);
  }
  for (Window& window : windows_) window = Window();
  random_.seed(options.seed);
  std::memset(grid_workspace_, 0, sizeof grid_workspace_);
  grid_workspace_[0] = sizeof grid_workspace_;
}

Dim Machine::BlockId(u64 index) const {
  if (options.order == 1 && options.reverse_blocks)
    index = u64{grid_.x} * grid_.y * grid_.z - 1 - index;
  return {static_cast<u32>(index % grid_.x), static_cast<u32>(index / grid_.x % grid_.y),
          static_cast<u32>(index / grid_.x / grid_.y)};
}

// `window` blocks at once, in turn or at random.
void Machine::RunBlocks(u64 window) {
  while (blocks_.size() < std::max<u64>(window, 1)) blocks_.push_back(std::make_unique<Block>());
  const u64 blocks = u64{grid_.x} * grid_.y * grid_.z;
  u64 next = 0, left = blocks, turn = 0;
  while (left > 0) {
    const u64 which = window > 1 && options.order == 2 ? random_() % window : turn++ % window;
    block_ = blocks_[which].get();
    if (!block_->live) {
      if (next >= blocks) continue;
      StartBlock(BlockId(next++));
    }
    if (!Step()) continue;
    block_->live = false;
    left--;
  }
}

void Machine::AllocateBlockMemory() {
  if (!block_->shared) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 4096, kSharedMax) != 0) throw std::bad_alloc();
    block_->shared = static_cast<u8*>(memory);
  }
  if (kernel_->module->has_local && !block_->local) {
    void* const memory = mmap(nullptr, kMostThreads * kLocalBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    block_->local = static_cast<u8*>(memory);
  }
}

void Machine::StartBlock(Dim id) {
  const u32 threads = block_size_.x * block_size_.y * block_size_.z;
  const u32 warps = (threads + kWarpSize - 1) / kWarpSize;
  AllocateBlockMemory();
  block_->id = id;
  block_->live = true;
  block_->threads.resize(threads);
  block_->alive = threads;
  block_->parked.assign(warps, 0);
  block_->gone.assign(warps, 0);
  if (threads % kWarpSize != 0) block_->gone.back() = ~0U << threads % kWarpSize;
  std::fill(std::begin(block_->arrived), std::end(block_->arrived), 0);
  block_->bulk_copies.clear();
  block_->shadow.Restart(options.race ? shared_bytes_ : 0, warps);
  block_->idle = 0;
  block_->steps = 0;
  std::memset(block_->shared, static_cast<u8>(kUnwritten), shared_bytes_);
  for (u32 k = 0; k < threads; k++) StartThread(k);
  block_->order.resize(threads);
  std::iota(block_->order.begin(), block_->order.end(), 0U);
  if (options.order == 1) std::reverse(block_->order.begin(), block_->order.end());
}

void Machine::StartThread(u32 index) {
  Thread& thread = block_->threads[index];
  thread.state = Thread::State::kReady;
  thread.index = index;
  thread.lane = index % kWarpSize;
  thread.warp = index / kWarpSize;
  thread.id = {index % block_size_.x, index / block_size_.x % block_size_.y,
               index / block_size_.x / block_size_.y};
  thread.mask = 0;
  thread.carry = false;
  thread.seen_hand_over = false;
  thread.copies.clear();
  thread.copy_group = 0;
  thread.local = kernel_->module->has_local ? block_->local + index * kLocalBytes : nullptr;
  thread.regs.assign(initial_regs_.begin(), initial_regs_.end());
  for (const Constant& constant : kernel_->constants)
    if (constant.from == Constant::From::kSpecial)
      thread.regs[constant.slot] = SpecialValue(thread, static_cast<Special>(constant.value));

  Frame frame;
  frame.function = kernel_;
  frame.params = params_.data();
  const u64 argument_bytes = kernel_->ArgumentBytes();
  if (kernel_->param_bytes > argument_bytes) {  // it passes parameters on
    frame.own_params = std::make_unique<u8[]>(kernel_->param_bytes + 16);
    frame.params = frame.own_params.get();
    std::memcpy(frame.params, params_.data(), argument_bytes);
  }
  thread.frames.clear();
  thread.frames.push_back(std::move(frame));
}

bool Machine::AnyThread(Thread::State state) const {
  return std::any_of(block_->threads.begin(), block_->threads.end(),
                     [&](const Thread& thread) { return thread.state == state; });
}

// One pass over the block's threads; true when all are done.
bool Machine::Step() {
  bool ran = false;
  const u64 before = instructions;
  if (options.order == 2) std::shuffle(block_->order.begin(), block_->order.end(), random_);
  for (const u32 k : block_->order) {
    Thread& thread = block_->threads[k];
    if (thread.state != Thread::State::kReady) continue;
    ran = true;
    RunThread(thread, options.order == 2 ? static_cast<int>(random_() % 64) + 1 : 4096);
  }
  if (block_->alive == 0) return true;
  block_->steps += instructions - before;
  if (block_->steps > options.limit) FailEndless();
  if (ran) block_->idle = 0;

  const bool at_barrier = AnyThread(Thread::State::kBarrier);
  const bool ready = AnyThread(Thread::State::kReady);
  if (ready && !at_barrier) return false;
  if (!ready && WakeActivemask()) return false;
  if (at_barrier) ReleaseBarriers();
  if (!AnyThread(Thread::State::kReady) && ++block_->idle > 1) FailDeadlock();
  return false;
}

bool Machine::WakeActivemask() {
  for (Thread& thread : block_->threads)
    if (thread.state == Thread::State::kWarp && thread.waiting->op == Op::kActivemask)
      CompleteWarpOperation(thread);
  return AnyThread(Thread::State::kReady);
}

void Machine::FailEndless() const {
  throw Error("kernel " + kernel_->name + PlaceOf(" block (%u,%u,%u)", block_->id, 0) +
              " ran over " + std::to_string(options.limit) +
              " instructions: an endless loop, or a wait for a later block (PTXRUN_LIMIT raises "
              "the bound)");
}

void Machine::FailDeadlock() const {
  std::string text = "deadlock in kernel " + kernel_->name;
  int listed = 0;
  for (const Thread& thread : block_->threads) {
    if (thread.state == Thread::State::kDone || listed++ >= 4) continue;
    text += "\n  thread " + std::to_string(thread.index) + " waits at PTX line " +
            std::to_string(thread.waiting->line) + " " + thread.waiting->text;
  }
  throw Error(text);
}

}  // namespace ptx
