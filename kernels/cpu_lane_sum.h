// Private to the cpu kernels: the LaneSum of kernels/sums.h over members that a function computes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/sums.h"

namespace slimgrad::kernels::cpu {

// Sum of member(begin) ... member(end - 1), at most kSumBlock of them. Never -0, since lanes start
// at +0.
template <class T, class Member>
T RunSum(std::size_t begin, std::size_t end, const Member& member) {
  alignas(64) T lanes[kSumLanes] = {};
  std::size_t i = begin;
  for (; end - i >= kSumLanes; i += kSumLanes)
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += member(i + lane);
  for (std::size_t lane = 0; i + lane < end; ++lane) lanes[lane] += member(i + lane);
  for (std::size_t width = kSumLanes / 2; width > 0; width /= 2)
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

template <class T, class Member>
T LaneSum(std::size_t begin, std::size_t end, const Member& member) {
  T sum = 0;
  for (std::size_t run = begin; run < end; run += std::min(kSumBlock, end - run))
    sum += RunSum<T>(run, run + std::min(kSumBlock, end - run), member);
  return sum;
}

}  // namespace slimgrad::kernels::cpu
