// Exact top-k in one pass over memory, as select_cpu.cc does it, without a way through the host:
//
// 1. A sample gives bounds of the k-th key that hold in all probability (BoundsKernel).
// 2. One pass lists the elements from the lower bound on, little more than k, and counts them in
//    bins; elements equal to a frequent lower bound are only counted (CollectKernel).
// 3. Passes over the list, usually one, leave one key of the k-th's bin (RefineKernel).
// 4. The list, filtered, is the result (WriteSelectedKernel).
//
// Where k is not small beside n, or equal elements have to be chosen from, step 4 reads the tensor
// again in place of a list. Where the bounds do not hold, or the list is too short, step 3 does.
// What a kernel finds that it need not do costs it one read.
#include <bit>
#include <cmath>

#include "kernels/cuda_select.cuh"
#include "kernels/elementwise.h"
#include "kernels/select.h"
#include "kernels/select_sample.h"

namespace slimgrad::kernels::cuda {
namespace {

// All is listed that may be selected where k is at most this share of n; else only what lies
// between the bounds.
constexpr std::size_t kListShare = 8;

constexpr double kDeviations = 4;
// Added to either side, for ranks so small that deviations say little.
constexpr double kLeastMargin = 8;

// What a plan asks of the sample, and room for what it then lists.
struct Sampling {
  SampleRanks ranks;
  std::size_t room;
};

Sampling SamplingOf(std::size_t n, std::size_t k, bool all) {
  const double size = kSample;
  const auto elements = static_cast<double>(n);
  const double rank = static_cast<double>(k) * size / elements;
  const double margin = kDeviations * std::sqrt(rank * (1 - rank / size)) + kLeastMargin;
  const double lower = std::ceil(rank + margin);
  const double upper = std::max(0.0, std::floor(rank - margin));
  const double bounded = std::min(lower, size);
  // The bounds may lie as far from their ranks again.
  const double listed = bounded + kDeviations * std::sqrt(bounded) + kLeastMargin -
                        (all ? 0 : upper - kDeviations * std::sqrt(upper));
  return {{static_cast<unsigned>(lower), static_cast<unsigned>(upper)},
          static_cast<std::size_t>(std::min(elements, std::ceil(listed * elements / size)))};
}

// residual: empty without feedback.
void Select(const Backend& backend, Scratch& scratch, In x, Out residual,
            std::span<std::uint32_t> indices, Out values) {
  const std::size_t n = x.size();
  const std::size_t k = indices.size();
  float* const fed = residual.empty() ? nullptr : residual.data();
  const Selected selected = {indices.data(), values.data(), k, fed};
  if (n <= kDirectElements)
    return SelectDirectly(backend, x.data(), fed, n, {indices.data(), values.data(), k, nullptr});

  const bool all = k <= n / kListShare;
  const Sampling sampling = SamplingOf(n, k, all);
  ScratchScope scope(scratch);
  const List list = {all ? scope.Take<std::uint32_t>(sampling.room).data() : nullptr,
                     scope.Take<float>(sampling.room).data(), sampling.room,
                     scope.Take<uint2>(TilesOf(n)).data()};
  const std::span<std::uint64_t> words = scope.Take<std::uint64_t>(WordsFor(n));
  Search* const search = scope.Take<Search>(1).data();
  FindCut(backend, {x.data(), fed, n, k, sampling.ranks, list, search, words.data(), words.size()});
  WriteSelected(backend, fed == nullptr ? x.data() : fed, n, list, search, words.data(), selected);
}

}  // namespace

void TopK(const Backend& backend, Scratch& scratch, In x, std::span<std::uint32_t> indices,
          Out values) {
  if (!indices.empty()) Select(backend, scratch, x, {}, indices, values);
}

void TopKFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                  std::span<std::uint32_t> indices, Out values) {
  if (indices.empty()) return AddSaturated(backend, x, residual);
  Select(backend, scratch, x, residual, indices, values);
}

void ThresholdSelect(const Backend& backend, Scratch& scratch, In x, float threshold,
                     std::span<std::uint32_t> indices, Out values, std::uint64_t* found) {
  ScratchScope scope(scratch);
  const std::span<std::uint64_t> words = scope.Take<std::uint64_t>(WordsFor(x.size()));
  Clear(backend, words.data(), words.size_bytes());
  WriteAbove(backend, x.data(), x.size(), std::bit_cast<Key>(threshold) & (kKeys - 1), words.data(),
             {indices.data(), values.data(), indices.size(), nullptr}, found);
}

}  // namespace slimgrad::kernels::cuda
