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

double Margin(double variance) { return kDeviations * std::sqrt(variance) + kLeastMargin; }

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

  // How far the number of elements from `lower` on may stray in a sample, squared, as the blocks
  // show it: neighbours may be alike, so elements are no measure.
  double VarianceOfCount(std::int32_t lower) const {
    const double blocks = size() / kSampleBlock;
    std::uint32_t hits = 0;
    std::uint32_t squares = 0;
    for (std::size_t i = 0; i < size_; i += kSampleBlock) {
      std::uint32_t block = 0;
      for (std::size_t j = 0; j < kSampleBlock; ++j) block += magnitudes_[i + j] >= lower;
      hits += block;
      squares += block * block;
    }
    return std::max(0.0, squares - static_cast<double>(hits) * hits / blocks);
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
  const double rank = RankOf(x.size(), k, sample.size());
  const std::int32_t guess = sample.At(std::clamp(rank, 1.0, sample.size()));
  // Where many are equal to the guess, what is above them varies and what is not below does not.
  // NaNs are above what could be counted.
  const double margin =
      Margin(std::max(sample.VarianceOfCount(guess),
                      sample.VarianceOfCount(std::min(guess, kLargestMagnitude - 1) + 1)));
  return {rank + margin >= sample.size() ? 0 : sample.At(std::ceil(rank + margin)),
          rank - margin < 1 ? kLargestMagnitude : sample.At(std::floor(rank - margin)), guess};
}

Widths WidthsOf(std::size_t n, std::size_t k) {
  const auto size = static_cast<double>(SampleBlocks(n) * kSampleBlock);
  // Blocks that are all hits or have none vary most.
  const auto most = [&](double rank) {
    return Margin(rank * std::max(0.0, 1 - rank / size) * kSampleBlock);
  };
  const double rank = RankOf(n, k, size);
  const double lowest = std::min(size, rank + most(rank));
  const auto elements = [&](double sampled) {
    return std::min(n, static_cast<std::size_t>(sampled * static_cast<double>(n) / size));
  };
  // The bounds are as far from the rank again as the rank is from what it stands for.
  return {elements(lowest + most(lowest)), elements(2 * (most(rank) + most(lowest)))};
}

}  // namespace slimgrad::kernels::cpu
