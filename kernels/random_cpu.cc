#include "kernels/cpu_ranges.h"
#include "kernels/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random_cpu.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

// Vectors begin at multiples of kCount; what lies before `first` and after the end is left out.
void FillRange(const RandomKey& key, std::uint64_t first, std::size_t n, std::uint16_t* to) {
  constexpr std::size_t kCount = PhiloxVectors::kElements;
  PhiloxVectors philox(key);
  HWY_ALIGN std::uint32_t values[kCount];
  std::size_t skip = first % kCount;
  for (std::size_t i = 0; i < n;) {
    VU vectors[PhiloxVectors::kVectors];
    philox.Random16s(first + i - skip, 0, vectors);
    Unroll<PhiloxVectors::kVectors>(
        [&](auto v) HWY_ATTR { hn::Store(vectors[v], kU32, values + v * kLanes); });
    const std::size_t count = std::min(n - i, kCount - skip);
    for (std::size_t j = 0; j < count; ++j)
      to[i + j] = static_cast<std::uint16_t>(values[skip + j]);
    i += count;
    skip = 0;
  }
}

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::kernels::cpu {

HWY_EXPORT(FillRange);

void FillRandom16(const Backend& backend, const RandomKey& key, std::uint64_t first,
                  std::span<std::uint16_t> to) {
  ForElements(backend, to.size(), [&](std::size_t begin, std::size_t end) {
    HWY_DYNAMIC_DISPATCH(FillRange)(key, first + begin, end - begin, to.data() + begin);
  });
}

}  // namespace slimgrad::kernels::cpu
#endif  // HWY_ONCE
