// Where a kernel runs: device, stream and executor. All of the kernels' choice of a device is here
// and in dispatch.cc.
//
// A family's header declares its contract once, and behind it stand three implementations: `ref` is
// the obvious, independent one that tests compare with, `cpu` the one that is used, `cuda` the one
// for memory on a GPU. The functions outside of these namespaces pick by backend.
//
// On a GPU: all memory that a call is handed lies there, as what it writes does, single numbers
// too. The call puts its work on the backend's stream and returns; only what returns a number waits
// for the stream. So a Status speaks of what the host can see. What is found wrong in the memory
// itself, such as indices that do not ascend, leaves the call without effect and is counted in
// CudaStream::faults().
#pragma once

#include <cstdint>

#include "core/check.h"
#include "core/executor.h"
#include "core/memory.h"
#include "core/status.h"
#include "core/tensor.h"

namespace slimgrad {

class CudaStream;  // kernels/cuda_stream.h

// Everything is borrowed.
struct Backend {
  Device device = Device::kCpu;
  CudaStream* cuda = nullptr;              // null for kCpu
  Executor* executor = &InlineExecutor();  // never null; for kCpu
  Memory* memory = &HostMemory();          // never null; the device's

  // If not null, calls have an effect only if this is not 0 by then. It lies on the device, so that
  // what a kernel found out can decide about the next without a way through the host.
  const std::uint64_t* only_if = nullptr;
};

namespace kernels {

// Waits until everything that was put on the backend is done. Errors: CudaStream::Wait's; OK on the
// CPU, where calls return when they are done.
Status Wait(const Backend& backend);

}  // namespace kernels

}  // namespace slimgrad

// Declares the implementations of a kernel, once its contract is declared. A program has `cuda` if
// it links //kernels:on_cuda.
#define SLIMGRAD_KERNEL(function)                                 \
  SLIMGRAD_REFERENCE(function);                                   \
  namespace cpu {                                                 \
  decltype(::slimgrad::kernels::function) function;               \
  }                                                               \
  namespace cuda {                                                \
  [[gnu::weak]] decltype(::slimgrad::kernels::function) function; \
  }                                                               \
  static_assert(true)

// Of one whose other implementations are declared elsewhere.
#define SLIMGRAD_REFERENCE(function)                \
  namespace ref {                                   \
  decltype(::slimgrad::kernels::function) function; \
  }                                                 \
  static_assert(true)

// Calls the implementation for the backend. A device that this program has no kernels for is the
// caller's mistake: the exchange refuses its views at set-up.
#define SLIMGRAD_DISPATCH(backend, function, ...)                \
  do {                                                           \
    if ((backend).device == ::slimgrad::Device::kCuda) {         \
      SLIMGRAD_CHECK(cuda::function != nullptr);                 \
      return cuda::function((backend), __VA_ARGS__);             \
    }                                                            \
    if ((backend).only_if != nullptr && *(backend).only_if == 0) \
      return decltype(cpu::function((backend), __VA_ARGS__))();  \
    return cpu::function((backend), __VA_ARGS__);                \
  } while (false)
