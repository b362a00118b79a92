// Top-k, selection by a threshold, and what undoes them.
#include "kernels/select.h"

#include <bit>
#include <cmath>

#include "benchmarks/codec_cases.h"
#include "core/scratch.h"
#include "kernels/elementwise.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

std::uint32_t Magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU; }

// The magnitude of rank k, 0 < k <= x.size().
std::uint32_t MagnitudeOfRank(In x, std::size_t rank) {
  std::vector<std::uint32_t> magnitudes(x.size());
  std::ranges::transform(x, magnitudes.begin(), Magnitude);
  const auto at = magnitudes.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::ranges::nth_element(magnitudes, at, std::greater());
  return *at;
}

// ref::TopK, which takes k passes: for large tensors another one, that shares nothing with the
// kernel either.
void TopKRef(In x, std::span<std::uint32_t> indices, Out values) {
  Scratch scratch;
  if (x.size() <= 4096) return k::ref::TopK({}, scratch, x, indices, values);
  const std::uint32_t least = MagnitudeOfRank(x, indices.size());
  const auto above = std::ranges::count_if(x, [&](float v) { return Magnitude(v) > least; });
  std::size_t equal = indices.size() - static_cast<std::size_t>(above);
  for (std::size_t i = 0, j = 0; j < indices.size(); ++i) {
    const bool is_equal = Magnitude(x[i]) == least && equal > 0;
    if (Magnitude(x[i]) <= least && !is_equal) continue;
    if (is_equal) --equal;
    indices[j] = static_cast<std::uint32_t>(i);
    values[j++] = x[i];
  }
}

std::size_t KeptOf(std::size_t n, double density) {
  return std::max<std::size_t>(1, std::llround(density * static_cast<double>(n)));
}

class TopK {
 public:
  TopK(std::size_t n, double density) : kept_(KeptOf(n, density)) {}
  using Code = CodeOf<std::uint32_t, float>;
  Code NewCode() const { return Code(kept_, kept_); }

  void Encode(const Backend& backend, In x, Code& code) {
    k::TopK(backend, scratch_, x, code.part<0>(), code.part<1>());
  }
  static void EncodeRef(In x, Code& code) { TopKRef(x, code.part<0>(), code.part<1>()); }
  void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) {
    k::TopKFeedback(backend, scratch_, x, residual, code.part<0>(), code.part<1>());
  }
  static void EncodeFeedbackRef(In x, Out residual, Code& code) {
    k::ref::AddSaturated({}, x, residual);
    TopKRef(residual, code.part<0>(), code.part<1>());
    for (const std::uint32_t index : code.part<0>()) residual[index] = 0;
  }
  static void Decode(const Backend& backend, const Code& code, Out y) {
    SLIMGRAD_CHECK(k::Scatter(backend, code.part<0>(), code.part<1>(), 1.0F, y).ok());
  }
  static void DecodeRef(const Code& code, Out y) {
    SLIMGRAD_CHECK(k::ref::Scatter({}, code.part<0>(), code.part<1>(), 1.0F, y).ok());
  }

 private:
  std::size_t kept_;
  Scratch scratch_;
};

// All elements from the magnitude on that a hundredth of them has.
class Threshold final : public Case {
 public:
  Threshold(Inputs inputs, std::size_t n, double density)
      : x_(std::move(inputs)),
        threshold_(std::bit_cast<float>(MagnitudeOfRank((*x_)[0], KeptOf(n, density)))) {
    for (std::size_t turn = 0; turn < kTurns; ++turn) codes_.emplace_back(2 * KeptOf(n, density));
  }

  void Run(const Backend& backend, std::size_t turn) override {
    Code& code = codes_[turn % kTurns];
    k::ThresholdSelect(backend, scratch_, (*x_)[turn], threshold_, code.indices.span(),
                       code.values.span(), &code.count);
  }
  Quality Check(const Backend& backend) override {
    Run(backend, 0);
    Code expected(codes_[0].indices.size());
    k::ref::ThresholdSelect({}, scratch_, (*x_)[0], threshold_, expected.indices.span(),
                            expected.values.span(), &expected.count);
    const Code& found = codes_[0];
    const std::size_t written = std::min(expected.count, found.indices.size());
    return {Differing(found.indices.first(written), expected.indices.first(written)) +
                Differing(found.values.first(written), expected.values.first(written)) +
                (found.count != expected.count),
            8 * written};
  }

 private:
  struct Code {
    explicit Code(std::size_t size) : indices(size), values(size) {
      TouchPages(indices.span());
      TouchPages(values.span());
    }
    Buffer<std::uint32_t> indices;
    Buffer<float> values;
    std::size_t count = 0;
  };

  Inputs x_;
  float threshold_;
  Scratch scratch_;
  std::vector<Code> codes_;
};

// The top k onto a tensor.
class ScatterAdd final : public Case {
 public:
  ScatterAdd(const Inputs& inputs, std::size_t n, double density)
      : codec_(n, density), codes_(CodesOf(codec_)), y_(n) {
    for (std::size_t turn = 0; turn < kTurns; ++turn)
      codec_.Encode({}, (*inputs)[turn], codes_[turn]);
  }

  void Run(const Backend& backend, std::size_t turn) override {
    const TopK::Code& code = codes_[turn % kTurns];
    SLIMGRAD_CHECK(k::ScatterAdd(backend, code.part<0>(), code.part<1>(), 0.5F, y_[turn]).ok());
  }
  Quality Check(const Backend& backend) override {
    const TopK::Code& code = codes_[0];
    const Buffer<float> expected(y_[0].size());
    for (int step = 0; step < 2; ++step) {
      Run(backend, 0);
      SLIMGRAD_CHECK(
          k::ref::ScatterAdd({}, code.part<0>(), code.part<1>(), 0.5F, expected.span()).ok());
    }
    return {Differing(y_[0], expected.span())};
  }

 private:
  TopK codec_;
  std::vector<TopK::Code> codes_;
  Rotation<float> y_;
};

}  // namespace

void AddSelect(Operations& operations) {
  for (const auto& [text, density] : {std::pair("0.001", 0.001), {"0.01", 0.01}, {"0.1", 0.1}}) {
    const std::string suffix = std::string("/density:") + text;
    operations.push_back(Make<EncodeCase<TopK>>("top_k" + suffix, density));
    operations.push_back(Make<FeedbackCase<TopK>>("top_k_feedback" + suffix, density));
  }
  operations.push_back(Make<DecodeCase<TopK>>("top_k_decode/density:0.01", 0.01));
  operations.push_back(Make<RoundTripCase<TopK>>("top_k_round_trip/density:0.01", 0.01));
  operations.push_back(Make<ScatterAdd>("scatter_add/density:0.01", 0.01));
  operations.push_back(Make<Threshold>("threshold_select/density:0.01", 0.01));
}

}  // namespace slimgrad::benchmarks
