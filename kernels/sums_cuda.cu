// Bytes an element, of what must be moved and of what is: SumSquares 4, Dot and
// SumSquaredDifferences 8, once. The runs' sums, 2 bytes for 1000 elements, go to the host, which
// is faster at a chain of additions.
#include <algorithm>
#include <array>

#include "kernels/blocks.h"
#include "kernels/cuda_lane_sum.cuh"
#include "kernels/cuda_pack.cuh"
#include "kernels/sums.h"

namespace slimgrad::kernels::cuda {
namespace {

// How many runs' sums are on their way at a time: the host has them on its stack.
constexpr std::size_t kRuns = 8192;
static_assert(kRuns * sizeof(double) <= CudaStream::kWorkspaceBytes);

// Threads of a block: few, so that also short tensors are spread over the device.
constexpr unsigned kRunThreads = 64;

struct Square {
  static constexpr bool kTwo = false;
  static __device__ double Of(double a, double) { return a * a; }
};
struct Product {
  static constexpr bool kTwo = true;
  static __device__ double Of(double a, double b) { return a * b; }
};
struct SquaredDifference {
  static constexpr bool kTwo = true;
  static __device__ double Of(double a, double b) {
    const double difference = a - b;
    return difference * difference;
  }
};

// sums[r] = the LaneSum of run r. A row of threads takes a run.
template <class Member, bool kPacked>
__global__ void RunsKernel(Guard guard, const float* x, const float* y, std::size_t n,
                           double* sums) {
  if (guard.Closed()) return;
  for (std::size_t run = FirstItem() / kRowThreads; run * kSumBlock < n;
       run += ItemStride() / kRowThreads) {
    const std::size_t begin = run * kSumBlock;
    const auto count = static_cast<std::uint32_t>(std::min(n - begin, std::size_t{kSumBlock}));
    const auto load = [&]<int kWidth>(std::uint32_t i) {
      const auto a = LoadPack<kWidth>(x + begin + i);
      auto b = a;
      if constexpr (Member::kTwo) b = LoadPack<kWidth>(y + begin + i);
      Pack<double, kWidth> members;
      for (int k = 0; k < kWidth; ++k) members.at[k] = Member::Of(a.at[k], b.at[k]);
      return members;
    };
    RowLanes<double> lanes;
    ForRow<kPacked>(count, load, [&](int k, double member) { lanes.at[k] += member; });
    const double sum = lanes.Join();
    if (threadIdx.x % kRowThreads == 0) sums[run] = sum;
  }
}

// Whether calls have no effect: known here, since these wait for the stream.
bool Closed(const Backend& backend) {
  if (backend.only_if == nullptr) return false;
  std::uint64_t open = 0;
  backend.cuda->memory().Read(&open, backend.only_if, sizeof open);
  return open == 0;
}

template <class Member>
double Sum(const Backend& backend, In x, In y) {
  if (Closed(backend)) return 0;
  auto* const on_device = reinterpret_cast<double*>(backend.cuda->workspace().data());
  const bool packed = Aligned(x.data(), y.data());
  double total = 0;
  for (std::size_t first = 0; first < x.size(); first += kRuns * kSumBlock) {
    const std::size_t count = std::min(kRuns * kSumBlock, x.size() - first);
    const std::size_t runs = BlockCount(count, kSumBlock);
    Launch(backend, "sums of runs", BlocksFor(backend, runs, kRunThreads / kRowThreads),
           kRunThreads, packed ? RunsKernel<Member, true> : RunsKernel<Member, false>,
           x.data() + first, y.data() + first, count, on_device);
    std::array<double, kRuns> sums;
    backend.cuda->memory().Read(sums.data(), on_device, runs * sizeof(double));
    for (std::size_t run = 0; run < runs; ++run) total += sums[run];
  }
  return total;
}

}  // namespace

double SumSquares(const Backend& backend, In x) { return Sum<Square>(backend, x, x); }

double Dot(const Backend& backend, In x, In y) { return Sum<Product>(backend, x, y); }

double SumSquaredDifferences(const Backend& backend, In x, In y) {
  return Sum<SquaredDifference>(backend, x, y);
}

}  // namespace slimgrad::kernels::cuda
