#include "kernels/simd.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "hwy/highway.h"

namespace slimgrad::kernels {
namespace {

struct Level {
  std::string_view name;
  std::int64_t target;
};

constexpr std::array kLevels = {
    Level{"sse4", HWY_SSE4},
    Level{"neon", HWY_NEON},
    Level{"avx2", HWY_AVX2},
    Level{"avx512", HWY_AVX3},
};

// What this machine has and the kernels were compiled for, whatever is forced.
std::int64_t MachineTargets() {
  static const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

bool Has(const Level& level) { return (MachineTargets() & level.target) != 0; }

}  // namespace

std::vector<std::string_view> SimdLevels() {
  std::vector<std::string_view> names;
  for (const Level& level : kLevels)
    if (Has(level)) names.push_back(level.name);
  return names;
}

std::string_view SimdLevel() {
  const std::int64_t targets = hwy::SupportedTargets() & MachineTargets();
  std::string_view best;
  for (const Level& level : kLevels)
    if ((targets & level.target) != 0) best = level.name;
  return best;
}

bool ForceSimdLevel(std::string_view name) {
  const auto* level = std::ranges::find(kLevels, name, &Level::name);
  if (!name.empty() && (level == kLevels.end() || !Has(*level))) return false;
  hwy::SetSupportedTargetsForTest(name.empty() ? 0 : level->target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

}  // namespace slimgrad::kernels
