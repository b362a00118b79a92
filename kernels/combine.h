// How ranks' summable payloads meet: elementwise over `inputs`, in rank order.
//
// inputs[r] is rank r's memory; all have to.size() bytes, a multiple of the dtype's size (CHECKed); `to` may be inputs[0].
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

enum class CombineOp : std::uint8_t {
  // ((x0 + x1) + x2 ...) / n: fp32 sums in rank order, one division, one rounding to the dtype. Where the fp32 sum of
  // finite inputs overflows, the element is summed in fp64 instead, so a mean of finite values is finite.
  kMean,  // F32, F16, BF16
  kSum,   // I32 and U64, modulo 2^bits: the sender leaves headroom
  kMax,   // F32 (finite), U8
};

void Combine(const Backend& backend, CombineOp op, DType dtype, std::span<const std::span<const std::byte>> inputs,
             std::span<std::byte> to);

namespace ref {
void Combine(const Backend& backend, CombineOp op, DType dtype, std::span<const std::span<const std::byte>> inputs,
             std::span<std::byte> to);
}  // namespace ref

namespace cpu {
void Combine(const Backend& backend, CombineOp op, DType dtype, std::span<const std::span<const std::byte>> inputs,
             std::span<std::byte> to);
}  // namespace cpu

// Whether Combine knows this pair.
bool CanCombine(CombineOp op, DType dtype);

}  // namespace slimgrad::kernels
