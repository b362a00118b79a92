// Bounds of the k-th largest magnitude from a sample: the sample's magnitudes some deviations
// above and below the rank that k has there.
#include <array>
#include <bit>
#include <cmath>

#include "kernels/cpu_saturate.h"
#include "kernels/cpu_select.h"
#include "kernels/select_sample.h"

namespace slimgrad::kernels::cpu {
namespace {

constexpr double kDeviations = 4;
// Added to either side, for ranks so small that deviations say little.
constexpr double kLeastMargin = 8;

// How far the number of sampled elements above a magnitude strays from the expected `rank`. A block
// gives up to 16 hits at once: `clustering` is 1 where hits are independent, 16 where they are not.
double Margin(double rank, double size, double clustering) {
  const double variance = rank * std::max(0.0, 1 - rank / size) * clustering;
  return kDeviations * std::sqrt(variance) + kLeastMargin;
}

class Sample {
 public:
  Sample(ScratchScope& scope, In x, In residual)
      : size_(SampleBlocks(x.size()) * kSampleBlock),
        magnitudes_(scope.Take<std::int32_t>(size_)),
        kept_(scope.Take<std::int32_t>(WithSlack(size_))) {
    for (std::size_t block = 0; block * kSampleBlock < size_; ++block) {
      const std::size_t begin = SampleBlockBegin(x.size(), block);
      Take(x.data() + begin, residual.empty() ? nullptr : residual.data() + begin,
           magnitudes_.data() + block * kSampleBlock);
    }
    for (std::int32_t magnitude : magnitudes_) ++counts_[BinOf(magnitude)];
  }

  double size() const { return static_cast<double>(size_); }

  // The magnitude of a rank, from 1.
  std::int32_t At(double rank) const {
    auto left = static_cast<std::size_t>(rank);
    std::size_t bin = counts_.size() - 1;
    for (; counts_[bin] < left; --bin) left -= counts_[bin];
    const auto lower = static_cast<std::int32_t>(bin << kShift);
    const std::size_t kept =
        KeepWithin(magnitudes_.data(), size_, {lower, lower + ((1 << kShift) - 1)}, kept_.data());
    return SelectRank(kept_.data(), kept, left).magnitude;
  }

  // The mean over hits of the hits in their block: what the variance of their number is, in units
  // of what it would be for independent ones.
  double Clustering(std::int32_t lower) const {
    std::uint32_t hits = 0;
    std::uint32_t squares = 0;
    for (std::size_t i = 0; i < size_; i += kSampleBlock) {
      std::uint32_t block = 0;
      for (std::size_t j = 0; j < kSampleBlock; ++j) block += magnitudes_[i + j] >= lower;
      hits += block;
      squares += block * block;
    }
    return hits == 0 ? 1 : static_cast<double>(squares) / hits;
  }

 private:
  static constexpr int kShift = 20;
  static std::size_t BinOf(std::int32_t magnitude) {
    return static_cast<std::size_t>(magnitude >> kShift);
  }
  static void Take(const float* x, const float* residual, std::int32_t* to) {
    std::array<float, kSampleBlock> sum;
    if (residual != nullptr)
      for (std::size_t j = 0; j < kSampleBlock; ++j) sum[j] = SaturatedSum(residual[j], x[j]);
    const float* from = residual != nullptr ? sum.data() : x;
    for (std::size_t j = 0; j < kSampleBlock; ++j)
      to[j] = std::bit_cast<std::int32_t>(from[j]) & kLargestMagnitude;
  }

  std::size_t size_;
  std::span<std::int32_t> magnitudes_;
  std::span<std::int32_t> kept_;
  std::array<std::uint32_t, std::size_t{1} << (31 - kShift)> counts_ = {};
};

// The rank that k has in a sample.
double RankOf(std::size_t n, std::size_t k, double size) {
  return static_cast<double>(k) * size / static_cast<double>(n);
}

}  // namespace

Bounds SampleBounds(Scratch& scratch, In x, In residual, std::size_t k) {
  ScratchScope scope(scratch);
  const Sample sample(scope, x, residual);
  const double size = sample.size();
  const double rank = RankOf(x.size(), k, size);
  const double margin =
      Margin(rank, size, sample.Clustering(sample.At(std::max(1.0, std::min(size, rank)))));
  return {rank + margin >= size ? 0 : sample.At(std::ceil(rank + margin)),
          rank - margin < 1 ? kLargestMagnitude : sample.At(std::floor(rank - margin))};
}

Widths WidthsOf(std::size_t n, std::size_t k) {
  const auto size = static_cast<double>(SampleBlocks(n) * kSampleBlock);
  const double rank = RankOf(n, k, size);
  // The sample's bounds stray once more as far as they are from the rank.
  const double margin = Margin(rank, size, kSampleBlock);
  const double lowest = std::min(size, rank + margin);
  const double lower_margin = Margin(lowest, size, kSampleBlock);
  const double scale = static_cast<double>(n) / size;
  const auto elements = [&](double sampled) {
    return std::min(n, static_cast<std::size_t>(sampled * scale));
  };
  return {elements(lowest + lower_margin), elements(2 * margin + 2 * lower_margin)};
}

}  // namespace slimgrad::kernels::cpu
