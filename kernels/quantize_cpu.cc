#include "kernels/cpu_ranges.h"
#include "kernels/quantize_call.h"

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

void EncodeInt8Blocks(const EncodeCall& call, std::size_t first, std::size_t last) {
  EncodeRounded<Int8Codes>(call, first, last);
}
void EncodeInt4Blocks(const EncodeCall& call, std::size_t first, std::size_t last) {
  EncodeRounded<Int4Codes>(call, first, last);
}
void DecodeInt8Blocks(const DecodeCall& call, std::size_t first, std::size_t last) {
  Decode<Int8Codes>(call, first, last);
}
void DecodeInt4Blocks(const DecodeCall& call, std::size_t first, std::size_t last) {
  Decode<Int4Codes>(call, first, last);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(EncodeInt8Blocks);
HWY_EXPORT(EncodeInt4Blocks);
HWY_EXPORT(DecodeInt8Blocks);
HWY_EXPORT(DecodeInt4Blocks);

}  // namespace

void EncodeInt8(const Backend& backend, const EncodeCall& call) {
  ForItems(backend, call.blocks, call.block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(EncodeInt8Blocks)(call, first, last);
  });
}

void EncodeInt4(const Backend& backend, const EncodeCall& call) {
  ForItems(backend, call.blocks, call.block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(EncodeInt4Blocks)(call, first, last);
  });
  // Codes of what is not finite may be any, in a group's padding too.
  if (call.n % 2 != 0) call.codes[call.n / 2] &= 0x0F;
}

void DecodeInt8(const Backend& backend, const DecodeCall& call) {
  ForItems(backend, call.blocks, call.block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(DecodeInt8Blocks)(call, first, last);
  });
}

void DecodeInt4(const Backend& backend, const DecodeCall& call) {
  ForItems(backend, call.blocks, call.block, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(DecodeInt4Blocks)(call, first, last);
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
