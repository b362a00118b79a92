// For the tests of ptxrun's runtime API: kernels whose effects are easy to see. One source of a
// test includes this: nvcc knows no inline kernels.
#pragma once

#include "tests/tools/ptxrun/device.h"

namespace slimgrad {

__global__ void Axpy(float a, const float* x, float* y, int count) {
  const int i = GlobalThread();
  if (i < count) y[i] += a * x[i];
}

__global__ void Iota(int* values, int first, int count) {
  const int i = GlobalThread();
  if (i < count) values[i] = first + i;
}

// values = 3 * values + addend: two in another order give another result.
__global__ void TripleAndAdd(int* values, int addend, int count) {
  const int i = GlobalThread();
  if (i < count) values[i] = 3 * values[i] + addend;
}

}  // namespace slimgrad
