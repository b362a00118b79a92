// The public functions of float8.h: each checks its arguments and picks by backend.
#include "kernels/float8.h"

#include "core/check.h"

namespace slimgrad::kernels {

void F32ToF8(const Backend& backend, Float8 format, In from, std::span<std::uint8_t> to,
             Overflow overflow, std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F32ToF8, format, from, to, overflow, overflowed);
}

void F32ToF8Feedback(const Backend& backend, Float8 format, In x, Out residual,
                     std::span<std::uint8_t> to, Overflow overflow, std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(x.size() == to.size() && residual.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F32ToF8Feedback, format, x, residual, to, overflow, overflowed);
}

void F8ToF32(const Backend& backend, Float8 format, std::span<const std::uint8_t> from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F8ToF32, format, from, to);
}

void F8Decode(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
              float weight, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  SLIMGRAD_DISPATCH(backend, F8Decode, format, from, weight, y);
}

void F8DecodeAdd(const Backend& backend, Float8 format, std::span<const std::uint8_t> from,
                 float weight, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  SLIMGRAD_DISPATCH(backend, F8DecodeAdd, format, from, weight, y);
}

}  // namespace slimgrad::kernels
