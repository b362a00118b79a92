// Where a kernel runs: device, stream and executor. This is the only device switch of the library.
//
// A family's header declares its contract once; `ref` is the obvious, independent implementation
// that tests compare with, `cpu` the one that is used. The functions outside of both namespaces
// pick by backend.
#pragma once

#include "core/check.h"
#include "core/executor.h"
#include "core/tensor.h"

namespace slimgrad {

struct Backend {
  Device device = Device::kCpu;
  void* stream = nullptr;                  // a cudaStream_t when the device is kCuda
  Executor* executor = &InlineExecutor();  // borrowed; never null
};

}  // namespace slimgrad

// Calls cpu::function(backend, ...). A device that this build has no kernels for is the caller's
// mistake: the exchange refuses its views at set-up.
#define SLIMGRAD_DISPATCH(backend, function, ...)                 \
  do {                                                            \
    SLIMGRAD_CHECK((backend).device == ::slimgrad::Device::kCpu); \
    return cpu::function((backend), __VA_ARGS__);                 \
  } while (false)
