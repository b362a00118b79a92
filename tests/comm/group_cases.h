// What every group must do, on any number of ranks: each function runs on all ranks of a group at
// once, checks what its local ones see, and counts on their rows alone.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/group.h"

namespace slimgrad {

struct Pair {
  kernels::CombineOp op;
  DType dtype;
};
inline constexpr Pair kPairs[] = {
    {kernels::CombineOp::kMean, DType::kF32},  {kernels::CombineOp::kMean, DType::kF16},
    {kernels::CombineOp::kMean, DType::kBF16}, {kernels::CombineOp::kSum, DType::kI32},
    {kernels::CombineOp::kSum, DType::kU64},   {kernels::CombineOp::kMax, DType::kF32},
    {kernels::CombineOp::kMax, DType::kU8}};
inline constexpr std::size_t kCounts[] = {0, 1, 2, 3, 5, 7, 8, 64, 1001};

// Messages of every length from none to a few alignments arrive whole, and are counted.
void GatherTurns(Group& group);

// What AllCombine must make of CombineAndCompare's values, by the reference.
std::vector<std::byte> Expected(Pair pair, std::size_t count, int world);
void CombineAndCompare(Group& group, Pair pair, std::size_t count,
                       const std::vector<std::byte>& expected);

// A group of two ranks.
void CombineByHand(Group& group);

// Both kinds of calls in turn.
void ManyCallsInARow(Group& group);

}  // namespace slimgrad
