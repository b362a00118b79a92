#include "sim/trace_tensors.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/check.h"
#include "core/strict_json.h"

namespace slimgrad::sim {
namespace {

std::string At(std::string_view tensor, std::size_t i) {
  return "tensor " + Quoted(tensor) + ": element " + std::to_string(i) + ": ";
}

}  // namespace

std::string TypeText(DType dtype, std::span<const std::int64_t> shape) {
  return std::string(NameOf(dtype)) + " " + ShapeText(shape);
}

Result<std::vector<ConstView>> MatchTensors(const Safetensors& file,
                                            std::span<const TensorSpec> specs, DType dtype) {
  std::vector<ConstView> views;
  for (const TensorSpec& spec : specs) {
    const SafetensorsEntry* entry = file.Find(spec.name);
    const std::string expected =
        "tensor " + Quoted(spec.name) + ": expected " + TypeText(dtype, spec.shape);
    if (entry == nullptr) return Mismatch(expected + ", found none");
    if (entry->dtype != dtype || entry->shape != spec.shape) {
      return Mismatch(expected + ", found " + TypeText(entry->dtype, entry->shape));
    }
    views.push_back(entry->view());
  }
  if (file.entries().size() == specs.size()) return views;
  std::set<std::string_view> names;
  for (const TensorSpec& spec : specs) names.insert(spec.name);
  const auto extra =
      std::find_if(file.entries().begin(), file.entries().end(),
                   [&](const SafetensorsEntry& entry) { return !names.contains(entry.name); });
  SLIMGRAD_CHECK(extra != file.entries().end());
  return Mismatch("tensor " + Quoted(extra->name) + ": expected only the " +
                  std::to_string(specs.size()) + " tensors of trace.json, found one more");
}

Status CheckFinite(std::string_view tensor, In values, bool not_negative) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return Corrupt(At(tensor, i) + "expected a finite number, found " +
                     std::to_string(values[i]));
    }
    if (not_negative && values[i] < 0) {
      return Corrupt(At(tensor, i) + "expected a number >= 0, found " + std::to_string(values[i]));
    }
  }
  return {};
}

std::int64_t IntegerAt(const ConstView& view, std::size_t i) {
  SLIMGRAD_CHECK(i < view.numel);
  switch (view.dtype) {
    case DType::kU8: return view.As<std::uint8_t>()[i];
    case DType::kU16: return view.As<std::uint16_t>()[i];
    case DType::kI32: return view.As<std::int32_t>()[i];
    case DType::kI64: return view.As<std::int64_t>()[i];
    default: break;
  }
  SLIMGRAD_CHECK(!"an integer tensor");
  return 0;
}

Status CheckBelow(std::string_view tensor, const ConstView& values, std::int64_t end) {
  for (std::size_t i = 0; i < values.numel; ++i) {
    const std::int64_t value = IntegerAt(values, i);
    if (value < 0 || value >= end) {
      return Corrupt(At(tensor, i) + "expected 0 to " + std::to_string(end - 1) + ", found " +
                     std::to_string(value));
    }
  }
  return {};
}

}  // namespace slimgrad::sim
