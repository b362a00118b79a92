// The k elements of largest magnitude, with their indices (Aji & Heafield 2017). Biased: wrap it in
// error_feedback.
#include <algorithm>
#include <cmath>

#include "compressors/api/registry.h"
#include "kernels/select.h"

namespace slimgrad {
namespace {

struct TopK {
  static constexpr SectionType kSections[] = {{Tag::kIndex, DType::kU32},
                                              {Tag::kValue, DType::kF32}};

  double ratio;  // of elements to keep, where `count` is 0
  std::size_t count;

  std::size_t KeptOf(std::size_t n) const {
    if (count > 0) return std::min(count, n);
    const double share = std::round(ratio * static_cast<double>(n));
    return std::min(n, std::max<std::size_t>(1, static_cast<std::size_t>(share)));
  }

  Result<Plan> MakePlan(const TensorSpec& tensor) const {
    const std::size_t n = tensor.numel();
    if (n > kMaxElements)
      return Unsupported("top_k: tensor '" + tensor.name +
                         "': expected at most 2^32 elements, found " + std::to_string(n));
    const std::size_t k = KeptOf(n);
    Traits traits = {.fixed_size = true};
    // The k largest of n squares are at least k / n of their sum (Stich et al. 2018, lemma A.1).
    if (k > 0) traits.delta = static_cast<double>(k) / static_cast<double>(n);
    traits.exact = k == n;
    return Plan{
        .rounds = {Round::Gather(SectionBytesOf<std::uint32_t>(k) + SectionBytesOf<float>(k))},
        .traits = traits};
  }
  void Encode(In x, const Context& context, Payload& payload) const {
    const std::size_t k = KeptOf(x.size());
    const auto indices = payload.Add<std::uint32_t>(Tag::kIndex, k);
    kernels::TopK(context.backend, *context.scratch, x, indices,
                  payload.Add<float>(Tag::kValue, k));
  }
  void EncodeFeedback(In x, Out residual, const Context& context, Payload& payload) const {
    const std::size_t k = KeptOf(x.size());
    const auto indices = payload.Add<std::uint32_t>(Tag::kIndex, k);
    kernels::TopKFeedback(context.backend, *context.scratch, x, residual, indices,
                          payload.Add<float>(Tag::kValue, k));
  }
  Status DecodeAdd(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::ScatterAdd, payload, context, weight, y);
  }
  Status Decode(const PayloadView& payload, const Context& context, float weight, Out y) const {
    return DecodeBy(kernels::Scatter, payload, context, weight, y);
  }
  template <class Kernel>
  Status DecodeBy(Kernel kernel, const PayloadView& payload, const Context& context, float weight,
                  Out y) const {
    const std::size_t k = KeptOf(y.size());
    SLIMGRAD_ASSIGN_OR_RETURN(const auto indices, payload.Get<std::uint32_t>(Tag::kIndex, k));
    SLIMGRAD_ASSIGN_OR_RETURN(const In values, payload.Get<float>(Tag::kValue, k));
    return kernel(context.backend, indices, values, weight, y);
  }

  static constexpr std::size_t kMaxElements = std::size_t{1} << 32;
};

SLIMGRAD_METHOD(top_k) {
  return {.summary = "the k elements of largest magnitude",
          .reference = "Aji & Heafield 2017; Stich et al. 2018",
          .parameters =
              {Real("ratio").Default(0.01).Above(0).AtMost(1).Doc("k = max(1, round(ratio * n))"),
               Integer("k").AtLeast(1).InsteadOf("ratio").Doc("elements to keep, at most all")},
          .example = "top_k(ratio=0.01)",
          .make = [](const Arguments& a) -> Result<Compressor> {
            return Compressor(a.Has("k") ? TopK{0, a.Size("k")} : TopK{a.Real("ratio"), 0});
          }};
}

}  // namespace
}  // namespace slimgrad
