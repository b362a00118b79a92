// What the kernels' benchmarks run on. Every role of a benchmark (inputs, residuals, outputs) has
// kTurns buffers, taken in turn: of large tensors none is still in a cache when its turn comes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.h"

namespace slimgrad::benchmarks {

inline constexpr std::size_t kTurns = 4;

// In elements: three that stay in the caches, three that do not. The fifth is 25 million, rounded
// down to a multiple of 8192.
inline constexpr std::array<std::size_t, 6> kSizes = {
    1 << 10, 1 << 14, 1 << 18, 1 << 20, 24'993'792, 1 << 26,
};

enum class Data {
  kNormal,    // standard deviation 1e-3, as the scale of the others
  kLaplace,   //
  kStudentT,  // two degrees of freedom: the variance is infinite
  kSparse,    // 99 % zeros, the others normal
  kConstant,
  kRecorded,   // the gradients of traces/digits_mlp, repeated
  kZeros,      // from here on: what a selection by sampled bounds is bad at
  kSparser,    // 99.95 % zeros
  kTwoValues,  // a third is 2e-3, the others -1e-3
  kSorted,     // ascending, a third negative
};

struct NamedData {
  std::string_view name;
  Data data;
};

inline constexpr std::array kAllData = {
    NamedData{"normal", Data::kNormal},        NamedData{"laplace", Data::kLaplace},
    NamedData{"student_t", Data::kStudentT},   NamedData{"sparse", Data::kSparse},
    NamedData{"constant", Data::kConstant},    NamedData{"recorded", Data::kRecorded},
    NamedData{"zeros", Data::kZeros},          NamedData{"sparser", Data::kSparser},
    NamedData{"two_values", Data::kTwoValues}, NamedData{"sorted", Data::kSorted},
};

// Pages become real when they are first written; no benchmark is to time that.
template <class T>
void TouchPages(std::span<T> values) {
  for (volatile T& value : values) value = T();
}

// kTurns buffers of one size, zeros, every page touched.
template <class T>
class Rotation {
 public:
  explicit Rotation(std::size_t size) {
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      buffers_.emplace_back(size);
      TouchPages(buffers_.back().span());
    }
  }
  std::span<T> operator[](std::size_t turn) const { return buffers_[turn % kTurns].span(); }

 private:
  std::vector<Buffer<T>> buffers_;
};

using Inputs = std::shared_ptr<const Rotation<float>>;

// Each buffer has values of its own (but for recorded ones). The last two kinds are kept.
Inputs InputsOf(Data data, std::size_t n);

}  // namespace slimgrad::benchmarks
