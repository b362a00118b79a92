#include "core/tensor.h"

#include <limits>

namespace slimgrad {

std::size_t TensorSpec::numel() const {
  SLIMGRAD_CHECK(Validate(*this).ok());
  std::size_t n = 1;
  for (std::int64_t extent : shape) n *= static_cast<std::size_t>(extent);
  return n;
}

Status Validate(const TensorSpec& spec) {
  constexpr std::int64_t kMax =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeof(double));
  const auto error = [&](const char* expected) {
    return InvalidArgument("tensor '" + spec.name + "': shape: expected " + expected + ", found " +
                           ShapeText(spec.shape));
  };
  if (spec.dtype != DType::kF32 && spec.dtype != DType::kF16 && spec.dtype != DType::kBF16)
    return InvalidArgument("tensor '" + spec.name + "': dtype: expected F32, F16 or BF16, found " +
                           std::string(NameOf(spec.dtype)));
  std::int64_t n = 1;
  for (std::int64_t extent : spec.shape) {
    if (extent < 0) return error("no negative extent");
    if (extent != 0 && n > kMax / extent) return error("fewer than 2^60 elements");
    n *= extent;
  }
  return {};
}

std::string ShapeText(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace slimgrad
