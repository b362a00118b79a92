// How ranks' summable payloads meet: elementwise over `inputs`, in rank order.
//
// inputs[r] is rank r's memory, of any alignment; there is at least one, and all have to.size()
// bytes, a multiple of the dtype's size (CHECKed). `to` overlaps no input, except that it may be
// inputs[0] itself.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

enum class CombineOp : std::uint8_t {
  // ((x0 + x1) + x2 ...) / n: fp32 sums in rank order, one fp32 division, one rounding to the
  // dtype. Where the fp32 sum is not finite, the element is summed and divided in fp64 instead, in
  // the same order, and rounded to fp32 first. What rounds beyond the dtype's largest finite value
  // saturates there: a mean of finite values is finite, for any n. With infinite or NaN inputs it
  // is what IEEE 754 says; a NaN is the positive quiet one without payload.
  kMean,  // F32, F16, BF16
  // Modulo 2^bits: the sender leaves headroom.
  kSum,  // I32 (two's complement), U64
  // Of equal values (+0 and -0 are) the lowest rank's. Finite values.
  kMax,  // F32, U8
};

void Combine(const Backend& backend, CombineOp op, DType dtype,
             std::span<const std::span<const std::byte>> inputs, std::span<std::byte> to);

SLIMGRAD_KERNEL(Combine);

// "mean", "sum", "max".
constexpr std::string_view NameOf(CombineOp op) {
  switch (op) {
    case CombineOp::kMean: return "mean";
    case CombineOp::kSum: return "sum";
    case CombineOp::kMax: return "max";
  }
  return "?";
}

// Whether Combine knows this pair (else it CHECKs).
constexpr bool CanCombine(CombineOp op, DType dtype) {
  switch (op) {
    case CombineOp::kMean:
      return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
    case CombineOp::kSum: return dtype == DType::kI32 || dtype == DType::kU64;
    case CombineOp::kMax: return dtype == DType::kF32 || dtype == DType::kU8;
  }
  return false;
}

}  // namespace slimgrad::kernels
