// Operations between the lanes of a warp. A thread waits in one until every lane of its member mask
// is there; the last to come computes the results of all.
#include <algorithm>
#include <bit>

#include "tools/ptxrun/machine/arithmetic.h"
#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

struct Result {
  u64 value = 0;
  bool pred = false;
};

// The lanes that take part in a warp operation.
class Group {
 public:
  Group(Machine& machine, Thread* lanes, u32 count, u32 mask)
      : machine_(machine), lanes_(lanes), count_(count) {
    for (u32 l = 0; l < count; l++) {
      if ((mask >> l & 1) == 0 || lanes[l].state != Thread::State::kWarp) continue;
      active_ |= 1U << l;
      if ((lanes[l].a & 1) != 0) ballot_ |= 1U << l;
    }
  }

  bool Has(u32 lane) const { return lane < count_ && (active_ >> lane & 1) != 0; }

  Result ResultOf(u32 lane) const {
    switch (lanes_[lane].waiting->op) {
      case Op::kShfl: return Shuffle(lane);
      case Op::kVote: return {Vote(lane), false};
      case Op::kMatch: return Match(lane);
      case Op::kRedux: return {Reduce(lane), false};
      case Op::kActivemask: return {active_, false};
      case Op::kElect: {
        const u32 leader = static_cast<u32>(std::countr_zero(active_));
        return {leader, lane == leader};
      }
      default: return {};
    }
  }

 private:
  // c holds the clamp in its low bits and the segment mask above.
  Result Shuffle(u32 lane) const {
    const Thread& thread = lanes_[lane];
    const u32 b = static_cast<u32>(thread.b) & 31, clamp = static_cast<u32>(thread.c) & 31;
    const u32 segment = static_cast<u32>(thread.c) >> 8 & 31;
    const u32 last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    u32 source = 0;
    bool inside = false;
    if (thread.waiting->warp_mode == WarpMode::kUp) {
      source = lane - b;
      inside = static_cast<i64>(lane) - b >= static_cast<i64>(last);
    } else {
      switch (thread.waiting->warp_mode) {
        case WarpMode::kDown: source = lane + b; break;
        case WarpMode::kBfly: source = lane ^ b; break;
        default: source = first | (b & ~segment);
      }
      inside = source <= last;
    }
    if (!inside) source = lane;
    if (Has(source)) return {ZeroExtend(lanes_[source].a, Type::kB32), inside};
    machine_.Note(thread, *thread.waiting, "shuffle reads an inactive lane");
    return {0xA5A5A5A5U, inside};
  }

  u64 Vote(u32 lane) const {
    switch (lanes_[lane].waiting->warp_mode) {
      case WarpMode::kBallot: return ballot_;
      case WarpMode::kAny: return ballot_ != 0;
      case WarpMode::kAll: return ballot_ == active_;
      default: return ballot_ == active_ || ballot_ == 0;
    }
  }

  Result Match(u32 lane) const {
    const Type type = lanes_[lane].waiting->type;
    u32 equal = 0;
    for (u32 k = 0; k < count_; k++)
      if (Has(k) && ZeroExtend(lanes_[k].a, type) == ZeroExtend(lanes_[lane].a, type))
        equal |= 1U << k;
    if (lanes_[lane].waiting->warp_mode != WarpMode::kAll) return {equal, false};
    const bool all = equal == active_;
    return {all ? active_ : 0, all};
  }

  u64 Reduce(u32 lane) const {
    const Instruction& i = *lanes_[lane].waiting;
    u64 result = 0;
    bool first = true;
    for (u32 k = 0; k < count_; k++) {
      if (!Has(k)) continue;
      const u64 value = ZeroExtend(lanes_[k].a, i.type);
      result = first ? value : Reduced(i, result, value);
      first = false;
    }
    return result;
  }

  static u64 Reduced(const Instruction& i, u64 x, u64 y) {
    switch (i.warp_mode) {
      case WarpMode::kAdd: return ZeroExtend(x + y, i.type);
      case WarpMode::kAnd: return x & y;
      case WarpMode::kOr: return x | y;
      case WarpMode::kXor: return x ^ y;
      case WarpMode::kMin: return Arithmetic(i, Op::kMin, i.type, x, y, 0);
      default: return Arithmetic(i, Op::kMax, i.type, x, y, 0);
    }
  }

  Machine& machine_;
  Thread* lanes_;
  u32 count_;
  u32 active_ = 0, ballot_ = 0;
};

void WriteResult(Thread& thread, const Result& result) {
  const Instruction& i = *thread.waiting;
  if (i.op == Op::kWarpBar) return;
  u64* const regs = &thread.regs[thread.frames.back().first_register];
  if (i.operands[0].IsRegister()) regs[i.operands[0].reg] = result.value;
  if (i.two_results && i.operands[1].IsRegister()) regs[i.operands[1].reg] = result.pred;
}

// activemask has no member mask: its lanes are those that wait at the same place when no other lane
// of the warp can run on. Zero while one can.
u32 ActiveLanes(const Thread* lanes, u32 count, const Instruction* ins) {
  u32 mask = 0;
  for (u32 l = 0; l < count; l++) {
    if (lanes[l].state == Thread::State::kReady) return 0;
    if (lanes[l].state == Thread::State::kWarp && lanes[l].waiting == ins) mask |= 1U << l;
  }
  return mask;
}

Flow Wait(Lane& lane) {
  Thread& thread = lane.thread;
  const bool has_mask = lane.ins.op != Op::kActivemask;
  if (has_mask && (thread.mask >> thread.lane & 1) == 0)
    lane.Fail("lane is not in its own member mask");
  thread.waiting = &lane.ins;
  thread.state = Thread::State::kWarp;
  lane.machine.block().parked[thread.warp] |= 1U << thread.lane;
  if (has_mask) lane.machine.CompleteWarpOperation(thread);
  return thread.state == Thread::State::kWarp ? Flow::kStop : Flow::kNext;
}

Flow Shfl(Lane& lane) {
  const std::size_t source = lane.ins.two_results ? 2 : 1;
  Thread& thread = lane.thread;
  thread.a = lane.Get(source);
  thread.b = lane.Get(source + 1);
  thread.c = lane.Get(source + 2);
  thread.mask = lane.Count() > source + 3 ? lane.Get32(source + 3) : ~0U;
  return Wait(lane);
}

Flow OneOperand(Lane& lane) {
  const std::size_t source = lane.ins.two_results ? 2 : 1;
  lane.thread.a = lane.Get(source);
  lane.thread.mask = lane.Get32(source + 1);
  return Wait(lane);
}

Flow Elect(Lane& lane) {
  lane.thread.mask = lane.Get32(lane.ins.two_results ? 2 : 1);
  return Wait(lane);
}

Flow WarpBar(Lane& lane) {
  lane.thread.mask = lane.Get32(0);
  return Wait(lane);
}

Flow Activemask(Lane& lane) {
  lane.thread.mask = 0;
  return Wait(lane);
}

}  // namespace

bool Machine::CompleteWarpOperation(Thread& thread) {
  const u32 first = thread.warp * kWarpSize;
  Thread* const lanes = &block_->threads[first];
  const u32 count = std::min(kWarpSize, static_cast<u32>(block_->threads.size()) - first);
  const Op op = thread.waiting->op;
  u32 mask = thread.mask;
  if (op == Op::kActivemask) {
    mask = ActiveLanes(lanes, count, thread.waiting);
    if (mask == 0) return false;
  } else {
    if ((mask & ~block_->gone[thread.warp] & ~block_->parked[thread.warp]) != 0) return false;
    for (u32 l = 0; l < count; l++) {
      const Thread& other = lanes[l];
      if ((mask >> l & 1) == 0 || other.state == Thread::State::kDone) continue;
      if (other.state != Thread::State::kWarp || other.mask != mask || other.waiting->op != op)
        return false;
    }
  }
  const Group group(*this, lanes, count, mask);
  Result results[kWarpSize];
  for (u32 l = 0; l < count; l++)
    if (group.Has(l)) results[l] = group.ResultOf(l);
  if (op == Op::kWarpBar) block_->shadow.OrderWarp(thread.warp);
  for (u32 l = 0; l < count; l++) {
    if (!group.Has(l)) continue;
    WriteResult(lanes[l], results[l]);
    lanes[l].mask = 0;
    lanes[l].state = Thread::State::kReady;
    block_->parked[thread.warp] &= ~(1U << l);
  }
  return true;
}

Handler WarpHandler(Op op) {
  switch (op) {
    case Op::kShfl: return Shfl;
    case Op::kVote:
    case Op::kMatch:
    case Op::kRedux: return OneOperand;
    case Op::kElect: return Elect;
    case Op::kWarpBar: return WarpBar;
    case Op::kActivemask: return Activemask;
    default: return nullptr;
  }
}

}  // namespace ptx
