// Private to the cpu kernels: the parts of top-k. How they go together stands in select_cpu.cc.
//
// Magnitudes are the 31 bits below the sign, as signed integers; -1 is below all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/scratch.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels::cpu {

inline constexpr std::int32_t kLargestMagnitude = std::numeric_limits<std::int32_t>::max();

// What is chosen: all above the magnitude, and of those equal to it the first `ties`.
struct Cut {
  std::int32_t magnitude = 0;
  std::size_t ties = 0;
};

// The magnitude of a Cut lies within, if all is well: both ends may be it.
struct Bounds {
  std::int32_t lower = 0;
  std::int32_t upper = 0;
  std::int32_t guess = kLargestMagnitude;  // between them, near it
};

// Elements that a loop works on before it asks whether there is room for as many more, and whether
// they come so densely that another loop is faster: they stay in the nearest cache meanwhile.
inline constexpr std::size_t kChunk = 2048;

// Room for so many entries, another chunk, and the vectors that are written over the end.
constexpr std::size_t WithSlack(std::size_t entries) { return entries + kChunk + 64; }

// Memory for chosen elements; `count` goes on where there is no room.
struct Sink {
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  std::size_t room = 0;
  bool stream = false;  // past the caches
  std::size_t count = 0;

  bool HasRoom() const { return WithSlack(count) <= room; }  // for another chunk
};

// For each mask of 4 or 8 lanes, the lanes that are set, in order, then whatever: as bytes of lanes
// of 4 bytes, and as lanes. Highway's own tables are copied to the stack in each call.
inline constexpr auto kBytesOfMask = [] {
  std::array<std::array<std::uint8_t, 16>, 16> table = {};
  for (unsigned mask = 0; mask < 16; ++mask)
    for (unsigned lane = 0, to = 0; lane < 4; ++lane)
      if ((mask >> lane & 1) != 0)
        for (unsigned byte = 0; byte < 4; ++byte)
          table[mask][to++] = static_cast<std::uint8_t>(4 * lane + byte);
  return table;
}();
inline constexpr auto kLanesOfMask = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table = {};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (unsigned lane = 0, to = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) table[mask][to++] = static_cast<std::uint8_t>(lane);
  return table;
}();

// --- select_rank_cpu.cc: selection within the caches

// The Cut that leaves the `rank` (>= 1) largest of n magnitudes, which are overwritten.
Cut SelectRank(std::int32_t* magnitudes, std::size_t n, std::size_t rank);

// Copies those within [lower, upper]; returns how many. `to` has room for all (WithSlack).
std::size_t KeepWithin(const std::int32_t* magnitudes, std::size_t n, Bounds bounds,
                       std::int32_t* to);

// The magnitudes of n elements.
void Magnitudes(const float* x, std::size_t n, std::int32_t* to);

// --- select_sample_cpu.cc

// How wide the bounds are, in elements of the tensor, at most, whatever the sample finds.
struct Widths {
  std::size_t above_lower = 0;  // elements above bounds.lower
  std::size_t between = 0;      // of these, elements up to bounds.upper
};
Widths WidthsOf(std::size_t n, std::size_t k);

// Bounds of the k-th largest magnitude of x, or of residual + x where there is a residual; only
// probable. n > kDirectElements, k >= 1.
Bounds SampleBounds(Scratch& scratch, In x, In residual, std::size_t k);

// --- select_pass_cpu.cc: what collects

// A run of consecutive elements, and what a pass found there.
struct Stripe {
  std::size_t begin = 0;
  std::size_t end = 0;

  // Elements above bounds.lower; and the magnitudes of those that are not above bounds.upper.
  Sink list = {};
  std::int32_t* band = nullptr;
  std::size_t band_room = 0;

  std::size_t banded = 0;  // goes on where there is no room
  std::size_t above = 0;   // elements above bounds.upper
  std::size_t ties = 0;    // elements equal to bounds.lower

  // Set once the cut of the tensor is known: the stripe's part of it, and of the result.
  Cut cut = {};
  Sink out = {};

  bool ListOverflowed() const { return !list.HasRoom(); }
  bool BandOverflowed() const { return WithSlack(banded) > band_room; }
};

enum class Collect : std::uint8_t { kList, kListAndBand, kBand };

// One pass over a stripe of x. With a residual (else null), of residual + x, which is stored
// there; but where elements are put on the list, those above bounds.guess leave +0 behind: few are
// then left for Filter to put right.
void CollectStripe(const float* x, float* residual, Bounds bounds, Collect what, Stripe& stripe);

// --- select_filter_cpu.cc: what filters

// Where a filter reads: n elements; their indices, or null where they are first, first + 1 ...
struct Source {
  const float* values;
  const std::uint32_t* indices;
  std::uint32_t first;
  std::size_t n;
};

// Appends what the cut leaves of the source until the sink is full. Unless `residual` is null, what
// is appended becomes +0 there; of a list it is so already above `cleared`, where other elements of
// the list get their values back.
void Filter(const Source& source, Cut cut, float* residual, std::int32_t cleared, Sink& sink);

// --- select_exact_cpu.cc

// The Cut of the k largest, whatever the input, in three passes.
Cut ExactCut(const Backend& backend, Scratch& scratch, std::span<const Stripe> stripes, In x,
             std::size_t k);

}  // namespace slimgrad::kernels::cpu
