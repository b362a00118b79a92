// From a launch in the host's code to a run of the interpreter.
#include "tools/ptxrun/runtime/launch.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/devices.h"
#include "tools/ptxrun/runtime/process.h"
#include "tools/ptxrun/runtime/streams.h"

namespace ptxrun {
namespace {

struct KernelLaunch {
  ptx::Function* kernel;
  dim3 grid;
  dim3 block;
  std::vector<std::uint8_t> arguments;
  std::size_t shared_bytes;
  Blocks blocks;
  int device;
};

// The processor's time of this thread: other threads' kernels are not counted twice.
double ThreadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::uint64_t Product(dim3 size) { return std::uint64_t{size.x} * size.y * size.z; }

cudaError_t Fault(const std::exception& fault) {
  Complain("ERROR %s", fault.what());
  Process& process = TheProcess();
  if (!process.no_abort) Quit(kExitFault);
  process.sticky_error = cudaErrorLaunchFailure;
  return cudaErrorLaunchFailure;
}

cudaError_t Run(const KernelLaunch& launch) {
  Process& process = TheProcess();
  ptx::Machine& device = *process.devices[static_cast<std::size_t>(launch.device)];
  const std::lock_guard device_lock(device.mutex);
  const double start = ThreadSeconds();
  const std::uint64_t instructions_before = device.instructions;
  process.launches++;
  process.threads += Product(launch.grid) * Product(launch.block);
  try {
    device.Launch(launch.kernel, {launch.grid.x, launch.grid.y, launch.grid.z},
                  {launch.block.x, launch.block.y, launch.block.z}, launch.arguments.data(),
                  launch.shared_bytes, launch.blocks == Blocks::kTogether);
  } catch (const std::exception& fault) {
    return Fault(fault);
  }
  const double seconds = ThreadSeconds() - start;
  const std::lock_guard lock(process.mutex);
  process.kernel_seconds += seconds;
  if (process.verbose) {
    Complain("%s device %d grid %llu block %llu: %llu instr %.3f s", launch.kernel->name.c_str(),
             launch.device, static_cast<unsigned long long>(Product(launch.grid)),
             static_cast<unsigned long long>(Product(launch.block)),
             static_cast<unsigned long long>(device.instructions - instructions_before), seconds);
  }
  return cudaSuccess;
}

std::vector<std::uint8_t> CopyArguments(const ptx::Function& kernel, void** arguments) {
  std::vector<std::uint8_t> copy(kernel.ArgumentBytes() + 8);
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    const ptx::Symbol& parameter = *kernel.params[i];
    std::memcpy(copy.data() + parameter.offset, arguments[i], parameter.size);
  }
  return copy;
}

// One launch, shared by the copies that std::function makes of what it holds.
Work MakeWork(KernelLaunch launch) {
  return
      [shared = std::make_shared<const KernelLaunch>(std::move(launch))] { return Run(*shared); };
}

bool IsValidShape(dim3 grid, dim3 block) {
  return Product(grid) > 0 && grid.x <= kMaxGridX && grid.y <= kMaxGridYZ && grid.z <= kMaxGridYZ &&
         Product(block) > 0 && Product(block) <= kMaxThreads && block.z <= kMaxBlockZ;
}

bool FitsShared(const ptx::Function& kernel, std::size_t dynamic_bytes) {
  const auto most = static_cast<std::size_t>(DynamicSharedBytes(kernel));
  if (dynamic_bytes <= most && FitsOptIn(kernel, dynamic_bytes)) return true;
  if (TheProcess().verbose)
    Complain(
        "%s: %zu bytes of dynamic shared memory refused (set "
        "cudaFuncAttributeMaxDynamicSharedMemorySize)",
        kernel.name.c_str(), dynamic_bytes);
  return false;
}

// Blocks that run together must all be on the device at once.
bool FitsTogether(dim3 grid, dim3 block) {
  const auto multiprocessors = static_cast<std::uint64_t>(TheProcess().devices[0]->options.sms);
  return Product(grid) <=
         multiprocessors * static_cast<std::uint64_t>(BlocksAMultiprocessor(Product(block)));
}

}  // namespace

ptx::Function* FindKernel(const void* stub) {
  Process& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const auto found = process.kernels.find(stub);
  return found == process.kernels.end() ? nullptr : found->second;
}

std::int64_t DynamicSharedBytes(const ptx::Function& kernel) {
  const auto static_bytes = static_cast<std::int64_t>(kernel.static_shared_bytes);
  return std::max<std::int64_t>(kernel.max_dynamic_shared_bytes, kSharedBytes - static_bytes);
}

bool FitsOptIn(const ptx::Function& kernel, std::size_t dynamic_bytes) {
  return kernel.static_shared_bytes + dynamic_bytes <= static_cast<std::size_t>(SharedBytesOptIn());
}

Work KernelWork(const cudaKernelNodeParams& parameters) {
  ptx::Function* kernel = FindKernel(parameters.func);
  if (kernel == nullptr || parameters.extra != nullptr) return nullptr;
  return MakeWork({.kernel = kernel,
                   .grid = parameters.gridDim,
                   .block = parameters.blockDim,
                   .arguments = CopyArguments(*kernel, parameters.kernelParams),
                   .shared_bytes = parameters.sharedMemBytes,
                   .blocks = Blocks::kInTurn,
                   .device = ThisThread().device});
}

cudaError_t Launch(const void* stub, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t handle, Blocks blocks) {
  if (const cudaError_t sticky = TheProcess().sticky_error) return sticky;
  ptx::Function* kernel = FindKernel(stub);
  if (kernel == nullptr) {
    Complain("launch of an unknown kernel (no PTX for it?)");
    return Record(cudaErrorInvalidDeviceFunction);
  }
  if (!IsValidShape(grid, block)) return Record(cudaErrorInvalidConfiguration);
  if (!FitsShared(*kernel, shared_bytes)) return Record(cudaErrorInvalidValue);
  if (blocks == Blocks::kTogether && !FitsTogether(grid, block))
    return Record(cudaErrorCooperativeLaunchTooLarge);
  const int device = DeviceOf(FindStream(handle));
  if (device != ThisThread().device) return Record(cudaErrorInvalidResourceHandle);
  return Issue(handle, cudaGraphNodeTypeKernel,
               MakeWork({.kernel = kernel,
                         .grid = grid,
                         .block = block,
                         .arguments = CopyArguments(*kernel, arguments),
                         .shared_bytes = shared_bytes,
                         .blocks = blocks,
                         .device = device}));
}

}  // namespace ptxrun

namespace {

// Between <<<...>>> and the stub that it calls: the configuration, once for each nested call.
struct CallConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

std::vector<CallConfiguration>& PendingCalls() {
  thread_local std::vector<CallConfiguration> calls;
  return calls;
}

}  // namespace

extern "C" {

// The names that nvcc's code calls.
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     cudaStream_t stream) {
  PendingCalls().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  if (PendingCalls().empty()) return cudaErrorMissingConfiguration;
  const CallConfiguration call = PendingCalls().back();
  PendingCalls().pop_back();
  *grid = call.grid;
  *block = call.block;
  *shared_bytes = call.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = call.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return ptxrun::Launch(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  return ptxrun::Launch(stub, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes, cudaStream_t stream) {
  return ptxrun::Launch(stub, grid, block, arguments, shared_bytes, stream,
                        ptxrun::Blocks::kTogether);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  auto blocks = ptxrun::Blocks::kInTurn;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) {
      blocks = attribute.val.cooperative != 0 ? ptxrun::Blocks::kTogether : ptxrun::Blocks::kInTurn;
    } else if (attribute.id == cudaLaunchAttributeClusterDimension) {
      const auto& size = attribute.val.clusterDim;
      if (std::uint64_t{size.x} * size.y * size.z <= 1) continue;
      ptxrun::Complain("clusters are unsupported");
      return ptxrun::Record(cudaErrorNotSupported);
    }
  }
  return ptxrun::Launch(stub, config->gridDim, config->blockDim, arguments,
                        config->dynamicSmemBytes, config->stream, blocks);
}

}  // extern "C"
