// Bytes an element, of what must be moved and of what is: Narrow, Widen and Decode 6, DecodeAdd 10,
// NarrowFeedback 14, Copy 8. One pass each.
#include "kernels/convert.h"
#include "kernels/cuda_convert.cuh"

namespace slimgrad::kernels::cuda {
namespace {

template <class Bits>
std::uint16_t* Codes(std::span<Bits> codes) {
  return reinterpret_cast<std::uint16_t*>(codes.data());
}
template <class Bits>
const std::uint16_t* Codes(std::span<const Bits> codes) {
  return reinterpret_cast<const std::uint16_t*>(codes.data());
}

}  // namespace

void F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow,
              std::uint64_t* overflowed) {
  NarrowAll<F16>(backend, from, Codes(to), overflow, overflowed);
}

void F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to, Overflow overflow,
               std::uint64_t* overflowed) {
  NarrowAll<BF16>(backend, from, Codes(to), overflow, overflowed);
}

void F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                      Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll<F16>(backend, x, residual, Codes(to), overflow, overflowed);
}

void F32ToBF16Feedback(const Backend& backend, In x, Out residual, std::span<bfloat16_bits> to,
                       Overflow overflow, std::uint64_t* overflowed) {
  FeedbackAll<BF16>(backend, x, residual, Codes(to), overflow, overflowed);
}

void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to) {
  WidenAll<F16, Then::kStore>(backend, Codes(from), 1.0F, to);
}

void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to) {
  WidenAll<BF16, Then::kStore>(backend, Codes(from), 1.0F, to);
}

void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  WidenAll<F16, Then::kAdd>(backend, Codes(from), weight, y);
}

void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  WidenAll<F16, Then::kScale>(backend, Codes(from), weight, y);
}

void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y) {
  WidenAll<BF16, Then::kAdd>(backend, Codes(from), weight, y);
}

void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y) {
  WidenAll<BF16, Then::kScale>(backend, Codes(from), weight, y);
}

void Copy(const Backend& backend, In from, Out to) { CopyWords(backend, from, to); }

}  // namespace slimgrad::kernels::cuda
