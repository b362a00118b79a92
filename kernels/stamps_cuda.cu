// A few hundred bytes in one launch, by value: nothing to speak of moves.
#include "kernels/cuda_launch.cuh"
#include "kernels/stamps.h"

namespace slimgrad::kernels::cuda {
namespace {

// A block a stamp, a thread a byte.
__global__ void WriteKernel(Guard guard, Stamps stamps, std::byte* frame) {
  if (guard.Closed()) return;
  const Stamp& stamp = stamps.stamps[blockIdx.x];
  if (threadIdx.x < stamp.size) frame[stamp.offset + threadIdx.x] = stamp.bytes[threadIdx.x];
}

__global__ void CheckKernel(Guard guard, Stamps stamps, const std::byte* frame,
                            std::uint64_t* wrong) {
  if (guard.Closed()) return;
  const Stamp& stamp = stamps.stamps[blockIdx.x];
  const bool differs =
      threadIdx.x < stamp.size && frame[stamp.offset + threadIdx.x] != stamp.bytes[threadIdx.x];
  if (__syncthreads_or(differs) != 0 && threadIdx.x == 0) atomicAdd(AsWide(wrong), Wide{1});
}

constexpr unsigned kStampBytes = sizeof(Stamp::bytes);

}  // namespace

void WriteStamps(const Backend& backend, const Stamps& stamps, std::span<std::byte> frame) {
  if (stamps.count == 0) return;
  Launch(backend, "write stamps", static_cast<unsigned>(stamps.count), kStampBytes, WriteKernel,
         stamps, frame.data());
}

void CheckStamps(const Backend& backend, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong) {
  if (stamps.count == 0) return;
  Launch(backend, "check stamps", static_cast<unsigned>(stamps.count), kStampBytes, CheckKernel,
         stamps, frame.data(), wrong);
}

}  // namespace slimgrad::kernels::cuda
