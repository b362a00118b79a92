// Sums of a fixed shape: the same bits for any SIMD width, thread count and device.
//
// LaneSum of a block of up to kSumBlock elements:
//   lanes  64 of them, each starting at +0; lane l adds elements l, l + 64, l + 128 ... in order
//   tree   for w = 32, 16, 8, 4, 2, 1: lane[l] += lane[l + w] for l < w; the sum is lane[0]
// A longer block is cut into runs of kSumBlock from its start; the runs' sums are added in order.
//
// Widening: an fp32 LaneSum whose total is not finite is formed again as a whole in fp64, in the
// same shape (products too, where members are products). If it still is not, a member is not.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

inline constexpr std::size_t kSumLanes = 64;
inline constexpr std::size_t kSumBlock = 4096;

// Sum of x * x, of x * y and of (x - y)^2 over spans of equal length (CHECKed): each operation in
// fp64, the LaneSum of all elements as one block. +0 for n = 0. Never overflows for finite x and y.
double SumSquares(const Backend& backend, In x);
double Dot(const Backend& backend, In x, In y);
double SumSquaredDifferences(const Backend& backend, In x, In y);

SLIMGRAD_KERNEL(SumSquares);
SLIMGRAD_KERNEL(Dot);
SLIMGRAD_KERNEL(SumSquaredDifferences);

}  // namespace slimgrad::kernels
