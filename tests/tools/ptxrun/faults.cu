// A program with faults planted in it: the argument says which one runs. faults_test.py knows what
// tools/ptxrun makes of each.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/tools/ptxrun/device.h"
#include "tests/tools/ptxrun/kernels.h"

extern "C" void** __cudaRegisterFatBinary(void* wrapper);

namespace slimgrad {
namespace {

// Besides ptxrun's own: what the program itself says of a call's result.
constexpr int kRefused = 42;
constexpr int kLaunchFailed = 43;
constexpr int kWrongResult = 44;

__global__ void WriteEach(int* out) { out[threadIdx.x] = 1; }

__global__ void ReadBeyondShared(int* out, int offset) {
  __shared__ int shared[32];
  shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x + static_cast<unsigned>(offset)];
}

__global__ void ReadBeyondLocal(int* out, int index) {
  int local[8];
  for (int i = 0; i < 8; ++i) local[i] = out[i];
  out[0] = local[index];
}

__global__ void ReadMisaligned(const char* bytes, float4* out) {
  *out = *reinterpret_cast<const float4*>(bytes + 4);
}

__global__ void DivergentBarrier(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    out[threadIdx.x] = static_cast<int>(__ballot_sync(~0U, 1));
  }
}

__global__ void RaceAcrossWarps(int* out) {
  __shared__ int shared[64];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = shared[63 - threadIdx.x];
}

__global__ void RaceInAWarp(int* out) {
  __shared__ int shared[32];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = shared[31 - threadIdx.x];
}

__global__ void WriteAfterWrite(int* out) {
  __shared__ int shared;
  shared = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = shared;
}

__global__ void WriteAfterRead(int* out) {
  __shared__ int shared[64];
  const auto me = static_cast<int>(threadIdx.x);
  shared[me] = 1;
  for (int round = 0; round < 3; ++round) {
    __syncthreads();
    const int other = shared[63 - me];
    shared[me] = other + me;
  }
  out[me] = shared[me];
}

__global__ void ReadUninitialised(int* out) {
  __shared__ int shared[64];
  if (threadIdx.x != 0) shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x];
}

__global__ void AddToUnsynchronised(int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  atomicAdd(&sum, 1);
  __syncthreads();
  out[threadIdx.x] = sum;
}

__global__ void ReadBeforeWaiting(int* out) {
  __shared__ int shared[64];
  __pipeline_memcpy_async(&shared[threadIdx.x], &out[threadIdx.x], sizeof(int));
  __pipeline_commit();
  __syncthreads();
  out[threadIdx.x] = shared[63 - threadIdx.x];
  __pipeline_wait_prior(0);
}

__global__ void ShuffleWithoutMyself(int* out) {
  out[threadIdx.x] = __shfl_sync(0xffff, static_cast<int>(threadIdx.x), 0);
}

__global__ void ShuffleFromInactive(int* out) {
  int value = 0;
  if (threadIdx.x < 16) value = __shfl_sync(0xffff, static_cast<int>(threadIdx.x), 20);
  out[threadIdx.x] = value;
}

__global__ void Assert(const int* out) { assert(out == nullptr); }

__global__ void MultiplyMatrices(const __half* a, float* out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0F);
  load_matrix_sync(left, a, 16);
  load_matrix_sync(right, a, 16);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(out, sum, 16, mem_row_major);
}

__global__ void SpinForEver(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}

__global__ void WaitForALaterBlock(volatile int* flag) {
  if (blockIdx.x != 0) *flag = 1;
  while (*flag == 0) {
  }
}

int* Zeros() {
  static DeviceArray<int> zeros(64);  // ptxrun ends most of these programs before it is freed
  zeros.Zero();
  return zeros.data();
}

// Launches and waits.
template <class... Parameters, class... Arguments>
int Try(unsigned blocks, unsigned threads, void (*kernel)(Parameters...),
        const Arguments&... arguments) {
  kernel<<<blocks, threads>>>(arguments...);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaErrorLaunchFailure) return kLaunchFailed;
  return cudaGetLastError() == cudaSuccess ? 0 : kRefused;
}

int UseFreed() {
  int* block = nullptr;
  Check(cudaMalloc(&block, 256));
  Check(cudaFree(block));
  return Try(1, 32, WriteEach, block);
}

int UseHostMemory() {
  std::vector<int> host(64);
  return Try(1, 32, WriteEach, host.data());
}

int UseAnotherDevices() {
  int* zeros = Zeros();
  Check(cudaSetDevice(1));
  return Try(1, 32, WriteEach, zeros);
}

int MatrixInstructions() {
  const DeviceArray<__half> a(256);
  const DeviceArray<float> out(256);
  return Try(1, 32, MultiplyMatrices, a.data(), out.data());
}

int Misaligned() {
  const DeviceArray<char> bytes(64);
  const DeviceArray<float4> out(1);
  return Try(1, 1, ReadMisaligned, bytes.data(), out.data());
}

int CopyTooMuch() {
  const std::vector<int> host(65);
  const cudaError_t error =
      cudaMemcpy(Zeros(), host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice);
  return error == cudaSuccess ? 0 : kRefused;
}

int FreeTwice() {
  void* block = nullptr;
  Check(cudaMalloc(&block, 256));
  Check(cudaFree(block));
  return cudaFree(block) == cudaSuccess ? 0 : kRefused;
}

// Of two kernels that need their order, and have no edge.
int MissingEdge() {
  int* zeros = Zeros();
  int count = 64, one = 1, two = 2;
  void* first[] = {&zeros, &one, &count};
  void* second[] = {&zeros, &two, &count};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(TripleAndAdd);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(64);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaGraphNode_t node = nullptr;
  Check(cudaGraphCreate(&graph, 0));
  parameters.kernelParams = first;
  Check(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  parameters.kernelParams = second;
  Check(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  Check(cudaGraphInstantiate(&executable, graph, 0));
  Check(cudaGraphLaunch(executable, nullptr));
  int result = 0;
  Check(cudaMemcpy(&result, zeros, sizeof result, cudaMemcpyDeviceToHost));
  return result == 3 * 1 + 2 ? 0 : kWrongResult;
}

// A fat binary of one entry, as nvcc's start-up code would hand it over.
int LoadPtx(const std::string& text) {
  struct Wrapper {
    std::int32_t magic, version;
    const void* data;
    void* unused;
  };
  struct {
    std::uint32_t magic = 0;
    std::uint16_t version = 1, header_bytes = 16;
    std::uint64_t entries_bytes = 0;
    std::uint16_t kind = 1, flags = 0;
    std::uint32_t entry_header_bytes = 16;
    std::uint64_t payload_bytes = 0;
    char payload[64] = {};
  } binary;
  text.copy(binary.payload, sizeof binary.payload - 1);
  binary.payload_bytes = sizeof binary.payload;
  binary.entries_bytes = 16 + sizeof binary.payload;
  Wrapper wrapper = {0, 1, &binary, nullptr};
  __cudaRegisterFatBinary(&wrapper);
  return 0;
}

using Faults = std::map<std::string, int (*)()>;

const Faults& AllFaults() {
  static const Faults faults = {
      {"none", [] { return Try(1, 64, WriteEach, Zeros()); }},
      {"out_of_bounds", [] { return Try(1, 65, WriteEach, Zeros()); }},
      {"null", [] { return Try(1, 1, WriteEach, static_cast<int*>(nullptr)); }},
      {"out_of_shared", [] { return Try(1, 32, ReadBeyondShared, Zeros(), 1); }},
      {"out_of_local", [] { return Try(1, 1, ReadBeyondLocal, Zeros(), 1 << 20); }},
      {"misaligned", Misaligned},
      {"freed", UseFreed},
      {"host_memory", UseHostMemory},
      {"other_device", UseAnotherDevices},
      {"divergent_barrier", [] { return Try(1, 32, DivergentBarrier, Zeros()); }},
      {"race_across_warps", [] { return Try(1, 64, RaceAcrossWarps, Zeros()); }},
      {"race_in_a_warp", [] { return Try(1, 32, RaceInAWarp, Zeros()); }},
      {"write_after_write", [] { return Try(1, 64, WriteAfterWrite, Zeros()); }},
      {"write_after_read", [] { return Try(1, 64, WriteAfterRead, Zeros()); }},
      {"uninitialised", [] { return Try(1, 64, ReadUninitialised, Zeros()); }},
      {"atomic_race", [] { return Try(1, 64, AddToUnsynchronised, Zeros()); }},
      {"missing_wait", [] { return Try(1, 64, ReadBeforeWaiting, Zeros()); }},
      {"not_in_mask", [] { return Try(1, 32, ShuffleWithoutMyself, Zeros()); }},
      {"inactive_lane", [] { return Try(1, 32, ShuffleFromInactive, Zeros()); }},
      {"assert", [] { return Try(1, 1, Assert, static_cast<const int*>(Zeros())); }},
      {"matrix", MatrixInstructions},
      {"endless", [] { return Try(1, 32, SpinForEver, Zeros()); }},
      {"later_block",
       [] { return Try(2, 1, WaitForALaterBlock, static_cast<volatile int*>(Zeros())); }},
      {"too_many_threads", [] { return Try(1, 2048, WriteEach, Zeros()); }},
      {"copy_too_much", CopyTooMuch},
      {"free_twice", FreeTwice},
      {"missing_edge", MissingEdge},
      {"compressed_ptx", [] { return LoadPtx("\x28\xb5\x2f\xfd"); }},
      {"unreadable_ptx", [] { return LoadPtx(".version 9.0\n.target sm_80\n.nonsense\n"); }},
  };
  return faults;
}

}  // namespace
}  // namespace slimgrad

int main(int argument_count, char** arguments) {
  const auto& faults = slimgrad::AllFaults();
  const auto found = argument_count == 2 ? faults.find(arguments[1]) : faults.end();
  if (found != faults.end()) return found->second();
  for (const auto& [name, run] : faults) std::printf("%s\n", name.c_str());
  return 2;
}
