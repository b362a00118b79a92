#include "core/dtype.h"

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

struct Known {
  DType dtype;
  int number;  // wire format
  std::size_t size;
  const char* name;
};

constexpr Known kAll[] = {
    {DType::kF32, 1, 4, "F32"},  {DType::kF16, 2, 2, "F16"},  {DType::kBF16, 3, 2, "BF16"},
    {DType::kU8, 4, 1, "U8"},    {DType::kI8, 5, 1, "I8"},    {DType::kI32, 6, 4, "I32"},
    {DType::kU32, 7, 4, "U32"},  {DType::kU64, 8, 8, "U64"},  {DType::kI64, 9, 8, "I64"},
    {DType::kF64, 10, 8, "F64"}, {DType::kU16, 11, 2, "U16"},
};

TEST(DType, NumbersSizesAndNames) {
  for (const Known& known : kAll) {
    EXPECT_EQ(static_cast<int>(known.dtype), known.number) << known.name;
    EXPECT_EQ(SizeOf(known.dtype), known.size) << known.name;
    EXPECT_EQ(NameOf(known.dtype), known.name);
    EXPECT_EQ(DTypeFromName(known.name), known.dtype) << known.name;
  }
}

TEST(DType, UnknownNumbersAndNames) {
  for (const int number : {0, 12, 255}) {
    EXPECT_EQ(SizeOf(static_cast<DType>(number)), 0U) << number;
    EXPECT_EQ(NameOf(static_cast<DType>(number)), "?") << number;
  }
  for (const char* name : {"", "f32", "F32 ", "F8_E4M3", "BOOL", "?"}) {
    EXPECT_FALSE(DTypeFromName(name).has_value()) << name;
  }
}

TEST(DType, StorageTypesHaveTheSizeTheyStandFor) {
  EXPECT_EQ(sizeof(half_bits), SizeOf(kDTypeOf<half_bits>));
  EXPECT_EQ(sizeof(bfloat16_bits), SizeOf(kDTypeOf<bfloat16_bits>));
  EXPECT_EQ(sizeof(double), SizeOf(kDTypeOf<double>));
  EXPECT_EQ(kDTypeOf<half_bits>, DType::kF16);
  EXPECT_EQ(kDTypeOf<bfloat16_bits>, DType::kBF16);
  EXPECT_EQ(kDTypeOf<std::uint16_t>, DType::kU16);
}

}  // namespace
}  // namespace slimgrad
