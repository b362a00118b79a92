// The public functions of quantize.h and qsgd.h: each checks its arguments and hands them to its
// backend's device as an EncodeCall or a DecodeCall.
#include "kernels/quantize.h"

#include "core/check.h"
#include "kernels/qsgd.h"
#include "kernels/quantize_call.h"

namespace slimgrad::kernels {
namespace {

constexpr float kLargestInt8 = 127.0F;
constexpr float kLargestInt4 = 7.0F;

float LargestOf(int levels) {
  SLIMGRAD_CHECK(levels >= 1 && levels <= kMaxQsgdLevels);
  return static_cast<float>(levels);
}

float* ResidualFor(In x, Out residual) {
  SLIMGRAD_CHECK(residual.size() == x.size());
  return residual.data();
}

// Whether codes are those of n elements in such blocks.
bool Fit(std::span<const std::int8_t> codes, std::size_t n, std::size_t /*block*/) {
  return codes.size() == n;
}
bool Fit(std::span<const std::uint8_t> codes, std::size_t n, std::size_t block) {
  return block % 2 == 0 && codes.size() == Int4Bytes(n);
}

template <class Code>
EncodeCall Encoding(In x, float* residual, std::size_t block, float largest, Rounding rounding,
                    const RandomKey& key, std::span<Code> codes, Out scales) {
  SLIMGRAD_CHECK(block > 0 && scales.size() == BlockCount(x.size(), block) &&
                 Fit(codes, x.size(), block));
  return {.x = x.data(),
          .residual = residual,
          .n = x.size(),
          .block = block,
          .blocks = scales.size(),
          .largest = largest,
          .rounding = rounding,
          .key = key,
          .codes = reinterpret_cast<std::uint8_t*>(codes.data()),
          .scales = scales.data()};
}

template <class Code>
DecodeCall Decoding(std::span<const Code> codes, In scales, std::size_t block, float largest,
                    float weight, bool add, Out y) {
  SLIMGRAD_CHECK(block > 0 && scales.size() == BlockCount(y.size(), block) &&
                 Fit(codes, y.size(), block));
  return {.codes = reinterpret_cast<const std::uint8_t*>(codes.data()),
          .scales = scales.data(),
          .n = y.size(),
          .block = block,
          .blocks = scales.size(),
          .largest = largest,
          .weight = weight,
          .add = add,
          .y = y.data()};
}

}  // namespace

void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax) {
  SLIMGRAD_DISPATCH(backend, EncodeInt8,
                    Encoding(x, nullptr, block, kLargestInt8, rounding, key, codes, absmax));
}

void Int4Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::uint8_t> codes, Out absmax) {
  SLIMGRAD_DISPATCH(backend, EncodeInt4,
                    Encoding(x, nullptr, block, kLargestInt4, rounding, key, codes, absmax));
}

void QsgdEncode(const Backend& backend, In x, std::size_t bucket, int levels, const RandomKey& key,
                std::span<std::int8_t> codes, Out norms) {
  SLIMGRAD_DISPATCH(
      backend, EncodeLevels,
      Encoding(x, nullptr, bucket, LargestOf(levels), Rounding::kStochastic, key, codes, norms));
}

void Int8EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::int8_t> codes,
                        Out absmax) {
  SLIMGRAD_DISPATCH(
      backend, EncodeInt8,
      Encoding(x, ResidualFor(x, residual), block, kLargestInt8, rounding, key, codes, absmax));
}

void Int4EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::uint8_t> codes,
                        Out absmax) {
  SLIMGRAD_DISPATCH(
      backend, EncodeInt4,
      Encoding(x, ResidualFor(x, residual), block, kLargestInt4, rounding, key, codes, absmax));
}

void QsgdEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t bucket, int levels,
                        const RandomKey& key, std::span<std::int8_t> codes, Out norms) {
  SLIMGRAD_DISPATCH(backend, EncodeLevels,
                    Encoding(x, ResidualFor(x, residual), bucket, LargestOf(levels),
                             Rounding::kStochastic, key, codes, norms));
}

void Int8Decode(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                std::size_t block, float weight, Out y) {
  SLIMGRAD_DISPATCH(backend, DecodeInt8,
                    Decoding(codes, absmax, block, kLargestInt8, weight, false, y));
}

void Int4Decode(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                std::size_t block, float weight, Out y) {
  SLIMGRAD_DISPATCH(backend, DecodeInt4,
                    Decoding(codes, absmax, block, kLargestInt4, weight, false, y));
}

void QsgdDecode(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                std::size_t bucket, int levels, float weight, Out y) {
  SLIMGRAD_DISPATCH(backend, DecodeInt8,
                    Decoding(codes, norms, bucket, LargestOf(levels), weight, false, y));
}

void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y) {
  SLIMGRAD_DISPATCH(backend, DecodeInt8,
                    Decoding(codes, absmax, block, kLargestInt8, weight, true, y));
}

void Int4DecodeAdd(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                   std::size_t block, float weight, Out y) {
  SLIMGRAD_DISPATCH(backend, DecodeInt4,
                    Decoding(codes, absmax, block, kLargestInt4, weight, true, y));
}

void QsgdDecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In norms,
                   std::size_t bucket, int levels, float weight, Out y) {
  SLIMGRAD_DISPATCH(backend, DecodeInt8,
                    Decoding(codes, norms, bucket, LargestOf(levels), weight, true, y));
}

}  // namespace slimgrad::kernels
