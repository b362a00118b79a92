// Element types of gradients, payload sections, state fields and files. The numbers are wire
// format: docs/wire_format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace slimgrad {

enum class DType : std::uint8_t {
  kF32 = 1,
  kF16 = 2,   // IEEE 754 binary16, held as half_bits
  kBF16 = 3,  // upper half of an fp32, held as bfloat16_bits
  kU8 = 4,
  kI8 = 5,
  kI32 = 6,
  kU32 = 7,
  kU64 = 8,
  kI64 = 9,
  kF64 = 10,
  kU16 = 11,
};

// Storage of 16-bit floats: distinct types, so that their dtype can be told from the C++ type.
enum class half_bits : std::uint16_t {};
enum class bfloat16_bits : std::uint16_t {};

// Bytes an element; 0 for a number that is no DType.
std::size_t SizeOf(DType dtype);

// "F32", "BF16", ...: the names that safetensors uses; "?" for a number that is no DType.
std::string_view NameOf(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

template <class T>
struct DTypeTraits;
template <>
struct DTypeTraits<float> {
  static constexpr DType kDType = DType::kF32;
};
template <>
struct DTypeTraits<double> {
  static constexpr DType kDType = DType::kF64;
};
template <>
struct DTypeTraits<half_bits> {
  static constexpr DType kDType = DType::kF16;
};
template <>
struct DTypeTraits<bfloat16_bits> {
  static constexpr DType kDType = DType::kBF16;
};
template <>
struct DTypeTraits<std::uint8_t> {
  static constexpr DType kDType = DType::kU8;
};
template <>
struct DTypeTraits<std::int8_t> {
  static constexpr DType kDType = DType::kI8;
};
template <>
struct DTypeTraits<std::uint16_t> {
  static constexpr DType kDType = DType::kU16;
};
template <>
struct DTypeTraits<std::int32_t> {
  static constexpr DType kDType = DType::kI32;
};
template <>
struct DTypeTraits<std::uint32_t> {
  static constexpr DType kDType = DType::kU32;
};
template <>
struct DTypeTraits<std::int64_t> {
  static constexpr DType kDType = DType::kI64;
};
template <>
struct DTypeTraits<std::uint64_t> {
  static constexpr DType kDType = DType::kU64;
};

template <class T>
inline constexpr DType kDTypeOf = DTypeTraits<T>::kDType;

}  // namespace slimgrad
