// Owned fp32 memory for one value of every tensor (weights, a gradient, an average), with the views
// that other parts take.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "core/tensor.h"

namespace slimgrad::sim {

// Zeroed. Move-only; moving keeps the views valid.
class TensorSet {
 public:
  TensorSet() = default;
  explicit TensorSet(std::span<const TensorSpec> tensors) {
    for (const TensorSpec& tensor : tensors) {
      buffers_.emplace_back(tensor.numel());
      const Out values = buffers_.back().span();
      ins_.emplace_back(values);
      outs_.push_back(values);
      const_views_.emplace_back(In(values));
      views_.emplace_back(values);
    }
  }

  std::span<const In> ins() const { return ins_; }
  std::span<const Out> outs() const { return outs_; }
  std::span<const ConstView> const_views() const { return const_views_; }
  std::span<const View> views() const { return views_; }

  // Takes the values of `from`, one span a tensor, of the same sizes.
  void Assign(std::span<const In> from) {
    for (std::size_t t = 0; t < outs_.size(); ++t)
      std::copy(from[t].begin(), from[t].end(), outs_[t].begin());
  }

 private:
  std::vector<Buffer<float>> buffers_;
  std::vector<In> ins_;
  std::vector<Out> outs_;
  std::vector<ConstView> const_views_;
  std::vector<View> views_;
};

}  // namespace slimgrad::sim
