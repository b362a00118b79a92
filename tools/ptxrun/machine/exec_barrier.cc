// Barriers of a block, fences, and giving way.
#include <sched.h>

#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

// bar.sync a [, b]   bar.arrive a, b   bar.red.op d, a [, b], p
Flow Bar(Lane& lane) {
  Thread& thread = lane.thread;
  const bool reduces = lane.ins.Has("red");
  const std::size_t at = reduces ? 1 : 0;
  std::size_t optional = lane.Count() - at - 1;
  thread.barrier = static_cast<int>(lane.Get(at));
  thread.barrier_count = 0;
  thread.barrier_pred = false;
  if (reduces) {
    thread.barrier_pred = (lane.Value(lane.ins.operands.back()) & 1) != 0;
    optional--;
  }
  if (optional > 0) thread.barrier_count = lane.Get32(at + 1);
  if (thread.barrier < 0 || thread.barrier >= kBarriers) lane.Fail("barrier number");
  if (lane.ins.Has("arrive")) {
    if (thread.barrier_count == 0) lane.Fail("bar.arrive without a count");
    lane.machine.block().arrived[thread.barrier]++;
    return Flow::kNext;
  }
  thread.waiting = &lane.ins;
  thread.state = Thread::State::kBarrier;
  return Flow::kStop;
}

Flow Fence(Lane& lane) {
  if (lane.thread.seen_hand_over) {
    lane.thread.seen_hand_over = false;
    lane.machine.block().shadow.OrderBlock();
  }
  return Flow::kNext;
}

Flow Sleep(Lane&) {
  if (device_count > 1) sched_yield();  // what it waits for may be another device's
  return Flow::kStop;
}

u64 BarrierResult(const Instruction& i, u32 waiting, u32 holding) {
  if (i.Has("popc")) return holding;
  if (i.Has("and")) return holding == waiting;
  return holding > 0;
}

}  // namespace

void Machine::ReleaseBarriers() {
  std::vector<Thread*> waiting[kBarriers];
  for (Thread& thread : block_->threads)
    if (thread.state == Thread::State::kBarrier) waiting[thread.barrier].push_back(&thread);
  for (int barrier = 0; barrier < kBarriers; barrier++)
    if (!waiting[barrier].empty()) ReleaseBarrier(barrier, waiting[barrier]);
}

// Without a count a barrier is for all threads that are not done.
void Machine::ReleaseBarrier(int barrier, const std::vector<Thread*>& waiting) {
  const u32 count = waiting[0]->barrier_count;
  const u32 here = static_cast<u32>(waiting.size());
  if (here + block_->arrived[barrier] < (count != 0 ? count : block_->alive)) return;
  block_->arrived[barrier] = 0;
  block_->shadow.OrderBlock();
  u32 holding = 0;
  for (const Thread* thread : waiting) holding += thread->barrier_pred;
  for (Thread* thread : waiting) {
    const Instruction& i = *thread->waiting;
    if (i.Has("red") && i.operands[0].IsRegister()) {
      const u32 first = thread->frames.back().first_register;
      thread->regs[first + i.operands[0].reg] = BarrierResult(i, here, holding);
    }
    thread->state = Thread::State::kReady;
  }
}

Handler BarrierHandler(Op op) {
  switch (op) {
    case Op::kBar: return Bar;
    case Op::kFence: return Fence;
    case Op::kSleep: return Sleep;
    default: return nullptr;
  }
}

}  // namespace ptx
