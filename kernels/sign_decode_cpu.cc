#include "kernels/cpu_bits.h"
#include "kernels/sign_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sign_decode_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

HWY_ALIGN_MAX inline constexpr std::uint32_t kBit[32] = {
    1U << 0,  1U << 1,  1U << 2,  1U << 3,  1U << 4,  1U << 5,  1U << 6,  1U << 7,
    1U << 8,  1U << 9,  1U << 10, 1U << 11, 1U << 12, 1U << 13, 1U << 14, 1U << 15,
    1U << 16, 1U << 17, 1U << 18, 1U << 19, 1U << 20, 1U << 21, 1U << 22, 1U << 23,
    1U << 24, 1U << 25, 1U << 26, 1U << 27, 1U << 28, 1U << 29, 1U << 30, 1U << 31};

// y = levels of the bits, or y plus them.
template <bool kAdd, bool kStream>
HWY_INLINE void LevelGroup(std::uint64_t word, VF up, VF down, float* HWY_RESTRICT y) {
  const VU halves[2] = {hn::Set(kU32, static_cast<std::uint32_t>(word)),
                        hn::Set(kU32, static_cast<std::uint32_t>(word >> 32))};
  Unroll<kGroupVectors>([&](auto v) HWY_ATTR {
    constexpr std::size_t kAt = v * kLanes;
    const auto set = hn::TestBit(halves[kAt / 32], hn::Load(kU32, kBit + kAt % 32));
    const VF level = hn::IfThenElse(hn::RebindMask(kF32, set), up, down);
    if constexpr (kAdd) {
      hn::StoreU(hn::LoadU(kF32, y + kAt) + level, kF32, y + kAt);
    } else {
      StoreAligned<kStream>(level, kF32, y + kAt);
    }
  });
}

template <bool kAdd>
HWY_INLINE void LevelPart(std::uint64_t word, std::size_t count, Levels levels, float* y) {
  for (std::size_t i = 0; i < count; ++i) {
    const float level = (word >> i & 1) != 0 ? levels.up : levels.down;
    y[i] = kAdd ? y[i] + level : level;
  }
}

// Elements begin ... begin + n - 1 of y, by their bits.
template <bool kAdd, bool kStream>
HWY_INLINE void LevelRange(const std::uint8_t* bits, std::size_t begin, std::size_t n,
                           Levels levels, float* y) {
  const VF up = hn::Set(kF32, levels.up);
  const VF down = hn::Set(kF32, levels.down);
  y += begin;
  std::size_t i = kStream ? BeforeLine(y, n) : 0;
  if (i > 0) LevelPart<kAdd>(BitsAt(bits, begin, i), i, levels, y);
  for (; n - i >= kGroup; i += kGroup)
    LevelGroup<kAdd, kStream>(BitsAt(bits, begin + i, kGroup), up, down, y + i);
  if (i < n) LevelPart<kAdd>(BitsAt(bits, begin + i, n - i), n - i, levels, y + i);
}

void AddLevels(const std::uint8_t* bits, std::size_t begin, std::size_t n, Levels levels,
               float* y) {
  LevelRange<true, false>(bits, begin, n, levels, y);
}

// FlushStream() after the last.
void SetLevels(const std::uint8_t* bits, std::size_t begin, std::size_t n, Levels levels,
               bool stream, float* y) {
  stream ? LevelRange<false, true>(bits, begin, n, levels, y)
         : LevelRange<false, false>(bits, begin, n, levels, y);
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {
namespace {

HWY_EXPORT(AddLevels);
HWY_EXPORT(SetLevels);

// Calls run(begin, count, levels(b)) for every block b and its elements.
template <class LevelsOf, class Run>
void ForLevels(const Backend& backend, std::size_t n, std::size_t block, const LevelsOf& levels,
               const Run& run) {
  ForBlocks(backend, n, block, [&](const Blocks& blocks) {
    for (std::size_t b = blocks.first; b < blocks.last; ++b)
      run(b * block, std::min(block, n - b * block), levels(b));
    hwy::FlushStream();
  });
}

template <class LevelsOf>
void DecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, std::size_t block, Out y,
               const LevelsOf& levels) {
  const auto add = HWY_DYNAMIC_DISPATCH(AddLevels);
  ForLevels(backend, y.size(), block, levels, [&](std::size_t begin, std::size_t n, Levels l) {
    add(bits.data(), begin, n, l, y.data());
  });
}

template <class LevelsOf>
void Decode(const Backend& backend, std::span<const std::uint8_t> bits, std::size_t block, Out y,
            const LevelsOf& levels) {
  const auto set = HWY_DYNAMIC_DISPATCH(SetLevels);
  const bool stream = OutgrowsCaches(y.size_bytes());
  ForLevels(backend, y.size(), block, levels, [&](std::size_t begin, std::size_t n, Levels l) {
    // As y = 0 + ... has it: no -0.
    set(bits.data(), begin, n, {0.0F + l.up, 0.0F + l.down}, stream, y.data());
  });
}

auto OneBitLevels(In positive, In negative, float weight) {
  return [=](std::size_t b) { return Levels{weight * positive[b], weight * negative[b]}; };
}

auto ScaledSignLevels(In scale, float weight) {
  return [=](std::size_t b) { return Levels{weight * scale[b], weight * -scale[b]}; };
}

}  // namespace

void SignUnpack(const Backend& backend, std::span<const std::uint8_t> bits, Out y) {
  Decode(backend, bits, kTaskElements, y, [](std::size_t) { return Levels{1, -1}; });
}

void OneBitDecode(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                  In negative, std::size_t block, float weight, Out y) {
  Decode(backend, bits, block, y, OneBitLevels(positive, negative, weight));
}

void OneBitDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                     In negative, std::size_t block, float weight, Out y) {
  DecodeAdd(backend, bits, block, y, OneBitLevels(positive, negative, weight));
}

void ScaledSignDecode(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                      std::size_t block, float weight, Out y) {
  Decode(backend, bits, block, y, ScaledSignLevels(scale, weight));
}

void ScaledSignDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                         std::size_t block, float weight, Out y) {
  DecodeAdd(backend, bits, block, y, ScaledSignLevels(scale, weight));
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
