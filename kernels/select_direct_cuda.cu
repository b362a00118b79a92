// Top-k of short tensors, by one block in one kernel: all elements are in its registers.
//
// Bytes an element that must be moved and that are: 4, with feedback 12, and 8 for each of the k.
#include "kernels/cuda_saturate.cuh"
#include "kernels/cuda_select.cuh"
#include "kernels/select_sample.h"

namespace slimgrad::kernels::cuda {
namespace {

// A thread's elements, a block apart: p = residual + x, if there is a residual.
template <int kRounds>
struct Column {
  float at[kRounds];
  std::uint32_t valid;
};
__device__ std::size_t PlaceOf(int round) { return round * blockDim.x + threadIdx.x; }

template <int kRounds>
__device__ Column<kRounds> LoadColumn(const float* x, const float* residual, std::size_t n) {
  Column<kRounds> column = {};
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const std::size_t i = PlaceOf(r);
    if (i >= n) continue;
    column.at[r] = residual == nullptr ? x[i] : AddSaturating(residual[i], x[i]);
    column.valid |= 1U << r;
  }
  return column;
}

// Counts of what the cut takes in the lower half, of its ties in the upper one: no more than
// kDirectElements each.
__device__ std::uint32_t CountOf(std::uint32_t above, std::uint32_t ties) {
  return __popc(above) | static_cast<std::uint32_t>(__popc(ties)) << 16;
}

template <unsigned kBlock, int kRounds>
__device__ void WriteColumn(const Column<kRounds>& column, const Cut& cut, float* residual,
                            const Selected& selected) {
  constexpr unsigned kWarps = kBlock / kWarp;
  constexpr unsigned kCells = kRounds * kWarps;  // a round of a warp each
  static_assert(kCells <= kBlock);
  __shared__ uint2 ballots[kCells];  // above, and ties
  __shared__ std::uint32_t before[kCells];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const bool valid = (column.valid >> r & 1U) != 0;
    const Key key = KeyOf(column.at[r]);
    const std::uint32_t above = __ballot_sync(~0U, valid && cut.Takes(key));
    const std::uint32_t ties = __ballot_sync(~0U, valid && cut.Ties(key));
    if (Lane() == 0) ballots[r * kWarps + WarpOfBlock()] = {above, ties};
  }
  __syncthreads();
  const bool counts = threadIdx.x < kCells;
  const uint2 cell = counts ? ballots[threadIdx.x] : uint2{0, 0};
  const std::uint32_t place = BlockSum<kBlock>(CountOf(cell.x, cell.y)).before;
  if (counts) before[threadIdx.x] = place;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const uint2 ballot = ballots[r * kWarps + WarpOfBlock()];
    const std::uint32_t at = before[r * kWarps + WarpOfBlock()] +
                             CountOf(ballot.x & LanesBelow(), ballot.y & LanesBelow());
    const std::uint32_t ties = at >> 16;
    const bool taken =
        (ballot.x >> Lane() & 1U) != 0 || ((ballot.y >> Lane() & 1U) != 0 && ties < cut.ties);
    if (residual != nullptr && (column.valid >> r & 1U) != 0)
      residual[PlaceOf(r)] = taken ? 0.0F : column.at[r];
    if (taken)
      selected.Put((at & 0xFFFFU) + min(std::uint64_t{ties}, cut.ties), PlaceOf(r), column.at[r]);
  }
}

template <unsigned kBlock, int kRounds>
__global__ void __launch_bounds__(kBlock)
    DirectKernel(Guard guard, const float* x, float* residual, std::size_t n, Selected selected) {
  if (guard.Closed()) return;
  const auto column = LoadColumn<kRounds>(x, residual, n);
  const Ranked last =
      SelectInBlock<kBlock>(column.at, column.valid, static_cast<std::uint32_t>(selected.room));
  WriteColumn<kBlock>(column, {last.key + 1, selected.room - last.larger}, residual, selected);
}

}  // namespace

void SelectDirectly(const Backend& backend, const float* x, float* residual, std::size_t n,
                    const Selected& selected) {
  constexpr unsigned kFew = 256;
  constexpr unsigned kMany = 1024;
  const bool few = n <= std::size_t{4} * kFew;
  Launch(backend, "top-k of a short tensor", 1, few ? kFew : kMany,
         few ? DirectKernel<kFew, 4> : DirectKernel<kMany, kDirectElements / kMany>, x, residual, n,
         selected);
}

}  // namespace slimgrad::kernels::cuda
