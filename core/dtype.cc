#include "core/dtype.h"

#include <algorithm>
#include <array>

namespace slimgrad {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array kRows = {
    Row{DType::kF32, "F32", 4}, Row{DType::kF16, "F16", 2}, Row{DType::kBF16, "BF16", 2},
    Row{DType::kU8, "U8", 1},   Row{DType::kI8, "I8", 1},   Row{DType::kI32, "I32", 4},
    Row{DType::kU32, "U32", 4}, Row{DType::kU64, "U64", 8}, Row{DType::kI64, "I64", 8},
    Row{DType::kF64, "F64", 8}, Row{DType::kU16, "U16", 2},
};

const Row* Find(DType dtype) {
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [=](const Row& r) { return r.dtype == dtype; });
  return row == kRows.end() ? nullptr : row;
}

}  // namespace

std::size_t SizeOf(DType dtype) {
  const Row* row = Find(dtype);
  return row ? row->size : 0;
}

std::string_view NameOf(DType dtype) {
  const Row* row = Find(dtype);
  return row ? row->name : "?";
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace slimgrad
