#include "core/check.h"
#include "kernels/cpu_quantize.h"
#include "kernels/cpu_ranges.h"
#include "kernels/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

class AbsMax {
 public:
  // Written out, as implicit constructors are compiled for no instruction set.
  AbsMax() {
    Unroll<4>([&](auto k) HWY_ATTR { top_[k] = hn::Zero(kU32); });
  }

  HWY_INLINE void Add(const VF (&x)[kGroupVectors]) {
    Unroll<kGroupVectors>(
        [&](auto v) HWY_ATTR { top_[v % 4] = MaxMagnitude(top_[v % 4], Magnitude(x[v])); });
  }
  HWY_INLINE float Of(const float* /*values*/, std::size_t /*count*/) const {
    const VU top = MaxMagnitude(MaxMagnitude(top_[0], top_[1]), MaxMagnitude(top_[2], top_[3]));
    return hn::GetLane(hn::BitCast(kF32, hn::MaxOfLanes(kI32, hn::BitCast(kI32, top))));
  }

 private:
  VU top_[4];
};

template <class Codes>
void EncodeRounded(const EncodeCall& call, std::size_t first, std::size_t last) {
  if (call.rounding == Rounding::kNearest) {
    Encode<Codes, Nearest, AbsMax>(call, first, last);
  } else {
    Encode<Codes, Stochastic, AbsMax>(call, first, last);
  }
}

void EncodeInt8(const EncodeCall& call, std::size_t first, std::size_t last) {
  EncodeRounded<Int8Codes>(call, first, last);
}
void EncodeInt4(const EncodeCall& call, std::size_t first, std::size_t last) {
  EncodeRounded<Int4Codes>(call, first, last);
}
void DecodeInt8(const DecodeCall& call, std::size_t first, std::size_t last) {
  Decode<Int8Codes>(call, first, last);
}
void DecodeInt4(const DecodeCall& call, std::size_t first, std::size_t last) {
  Decode<Int4Codes>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(EncodeInt8);
HWY_EXPORT(EncodeInt4);
HWY_EXPORT(DecodeInt8);
HWY_EXPORT(DecodeInt4);

constexpr float kLargest8 = 127.0F;
constexpr float kLargest4 = 7.0F;

void EncodeInt8All(const Backend& backend, In x, float* residual, std::size_t block,
                   Rounding rounding, const RandomKey& key, std::span<std::int8_t> codes,
                   Out absmax) {
  SLIMGRAD_CHECK(block > 0 && codes.size() == x.size() &&
                 absmax.size() == BlockCount(x.size(), block));
  const EncodeCall call = {.x = x.data(),
                           .residual = residual,
                           .n = x.size(),
                           .block = block,
                           .largest = kLargest8,
                           .rounding = rounding,
                           .key = key,
                           .stream = StreamsCodes(codes.data(), codes.size(), block),
                           .codes = reinterpret_cast<std::uint8_t*>(codes.data()),
                           .scales = absmax.data()};
  ForItems(backend, absmax.size(), block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(EncodeInt8)(call, first, last);
  });
}

void EncodeInt4All(const Backend& backend, In x, float* residual, std::size_t block,
                   Rounding rounding, const RandomKey& key, std::span<std::uint8_t> codes,
                   Out absmax) {
  SLIMGRAD_CHECK(block > 0 && block % 2 == 0 && codes.size() == Int4Bytes(x.size()) &&
                 absmax.size() == BlockCount(x.size(), block));
  const EncodeCall call = {.x = x.data(),
                           .residual = residual,
                           .n = x.size(),
                           .block = block,
                           .largest = kLargest4,
                           .rounding = rounding,
                           .key = key,
                           .stream = StreamsCodes(codes.data(), codes.size(), block / 2),
                           .codes = codes.data(),
                           .scales = absmax.data()};
  ForItems(backend, absmax.size(), block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(EncodeInt4)(call, first, last);
  });
  // Codes of what is not finite may be any, in a group's padding too.
  if (x.size() % 2 != 0) codes.back() &= 0x0F;
}

DecodeCall Int8Call(std::span<const std::int8_t> codes, In absmax, std::size_t block, float weight,
                    bool add, Out y) {
  SLIMGRAD_CHECK(block > 0 && codes.size() == y.size() &&
                 absmax.size() == BlockCount(y.size(), block));
  return {.codes = reinterpret_cast<const std::uint8_t*>(codes.data()),
          .scales = absmax.data(),
          .n = y.size(),
          .block = block,
          .largest = kLargest8,
          .weight = weight,
          .add = add,
          .stream = !add && StreamsResults(y, block),
          .y = y.data()};
}

void DecodeInt4All(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                   std::size_t block, float weight, bool add, Out y) {
  SLIMGRAD_CHECK(block > 0 && block % 2 == 0 && codes.size() == Int4Bytes(y.size()) &&
                 absmax.size() == BlockCount(y.size(), block));
  const DecodeCall call = {.codes = codes.data(),
                           .scales = absmax.data(),
                           .n = y.size(),
                           .block = block,
                           .largest = kLargest4,
                           .weight = weight,
                           .add = add,
                           .stream = !add && StreamsResults(y, block),
                           .y = y.data()};
  ForItems(backend, absmax.size(), block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(DecodeInt4)(call, first, last);
  });
}

}  // namespace

void DecodeInt8Blocks(const Backend& backend, const DecodeCall& call) {
  ForItems(backend, BlockCount(call.n, call.block), call.block,
           [&](std::size_t first, std::size_t last) {
             HWY_DYNAMIC_DISPATCH(DecodeInt8)(call, first, last);
           });
}

void Int8Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::int8_t> codes, Out absmax) {
  EncodeInt8All(backend, x, nullptr, block, rounding, key, codes, absmax);
}

void Int4Encode(const Backend& backend, In x, std::size_t block, Rounding rounding,
                const RandomKey& key, std::span<std::uint8_t> codes, Out absmax) {
  EncodeInt4All(backend, x, nullptr, block, rounding, key, codes, absmax);
}

void Int8EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::int8_t> codes,
                        Out absmax) {
  SLIMGRAD_CHECK(residual.size() == x.size());
  EncodeInt8All(backend, x, residual.data(), block, rounding, key, codes, absmax);
}

void Int4EncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                        Rounding rounding, const RandomKey& key, std::span<std::uint8_t> codes,
                        Out absmax) {
  SLIMGRAD_CHECK(residual.size() == x.size());
  EncodeInt4All(backend, x, residual.data(), block, rounding, key, codes, absmax);
}

void Int8Decode(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                std::size_t block, float weight, Out y) {
  DecodeInt8Blocks(backend, Int8Call(codes, absmax, block, weight, false, y));
}

void Int4Decode(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                std::size_t block, float weight, Out y) {
  DecodeInt4All(backend, codes, absmax, block, weight, false, y);
}

void Int8DecodeAdd(const Backend& backend, std::span<const std::int8_t> codes, In absmax,
                   std::size_t block, float weight, Out y) {
  DecodeInt8Blocks(backend, Int8Call(codes, absmax, block, weight, true, y));
}

void Int4DecodeAdd(const Backend& backend, std::span<const std::uint8_t> codes, In absmax,
                   std::size_t block, float weight, Out y) {
  DecodeInt4All(backend, codes, absmax, block, weight, true, y);
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
