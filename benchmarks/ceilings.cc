#include "benchmarks/ceilings.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/ceilings.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::benchmarks::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<std::uint8_t>;
using V = hn::Vec<D>;
inline constexpr D kD;

// A group of 512 elements has as many lines of 64 bytes as an element has bits.
constexpr std::size_t kLine = 64;
constexpr std::size_t kLineVectors = kLine / hn::MaxLanes(D());
constexpr std::size_t kAhead = 2048;  // bytes

struct Line {
  V v[kLineVectors];
};

template <bool kPrefetch>
HWY_INLINE Line Load(const std::uint8_t* from) {
  if constexpr (kPrefetch) hwy::Prefetch(from + kAhead);
  Line line;
  for (std::size_t i = 0; i < kLineVectors; ++i)
    line.v[i] = hn::Load(kD, from + i * hn::MaxLanes(D()));
  return line;
}

template <bool kStream>
HWY_INLINE void Store(const Line& line, std::uint8_t* to) {
  for (std::size_t i = 0; i < kLineVectors; ++i) {
    if constexpr (kStream) {
      hn::Stream(line.v[i], kD, to + i * hn::MaxLanes(D()));
    } else {
      hn::Store(line.v[i], kD, to + i * hn::MaxLanes(D()));
    }
  }
}

HWY_INLINE void XorInto(Line& to, const Line& line) {
  for (std::size_t i = 0; i < kLineVectors; ++i) to.v[i] = hn::Xor(to.v[i], line.v[i]);
}

// The xor of what a loop has read and not written: as long as it is used, so are the reads.
HWY_INLINE std::uint8_t Fold(const Line& line) {
  V all = line.v[0];
  for (std::size_t i = 1; i < kLineVectors; ++i) all = hn::Xor(all, line.v[i]);
  return static_cast<std::uint8_t>(hn::GetLane(hn::SumsOf8(all)));
}

// One line of input; with a residual, one of that too, and back.
template <bool kResidual, bool kPrefetch>
HWY_INLINE Line LoadOne(const std::uint8_t* in, std::uint8_t* residual) {
  Line line = Load<kPrefetch>(in);
  if constexpr (kResidual) {
    XorInto(line, Load<kPrefetch>(residual));
    Store<false>(line, residual);
  }
  return line;
}

template <int kRead, int kWrite, bool kResidual, bool kStream, bool kPrefetch>
std::uint8_t MoveGroups(std::size_t groups, const std::uint8_t* HWY_RESTRICT in,
                        std::uint8_t* HWY_RESTRICT residual, std::uint8_t* HWY_RESTRICT out) {
  Line sum = {};
  for (std::size_t i = 0; i < kLineVectors; ++i) sum.v[i] = hn::Zero(kD);
  for (std::size_t g = 0; g < groups; ++g) {
    if constexpr (kWrite == 0) {
      for (std::size_t i = 0; i < kRead; ++i, in += kLine, residual += kResidual ? kLine : 0) {
        const Line line = LoadOne<kResidual, kPrefetch>(in, residual);
        if constexpr (!kResidual) XorInto(sum, line);
      }
    } else if constexpr (kRead >= kWrite) {
      for (std::size_t o = 0; o < kWrite; ++o, out += kLine) {
        Line line = LoadOne<kResidual, kPrefetch>(in, residual);
        for (std::size_t i = 1; i < kRead / kWrite; ++i)
          XorInto(line, LoadOne<kResidual, kPrefetch>(in + i * kLine, residual + i * kLine));
        Store<kStream>(line, out);
        in += kRead / kWrite * kLine;
        residual += kResidual ? kRead / kWrite * kLine : 0;
      }
    } else {
      for (std::size_t i = 0; i < kRead; ++i, in += kLine) {
        const Line line = Load<kPrefetch>(in);
        for (std::size_t o = 0; o < kWrite / kRead; ++o, out += kLine) Store<kStream>(line, out);
      }
    }
  }
  if (kStream) hwy::FlushStream();
  return Fold(sum);
}

template <int kRead, int kWrite, bool kResidual>
std::uint8_t MoveBy(bool stream, bool prefetch, std::size_t groups, const std::uint8_t* in,
                    std::uint8_t* residual, std::uint8_t* out) {
  const auto move = stream     ? prefetch ? MoveGroups<kRead, kWrite, kResidual, true, true>
                                          : MoveGroups<kRead, kWrite, kResidual, true, false>
                        : prefetch ? MoveGroups<kRead, kWrite, kResidual, false, true>
                               : MoveGroups<kRead, kWrite, kResidual, false, false>;
  return move(groups, in, residual, out);
}

std::uint8_t Move(std::size_t traffic, bool stream, bool prefetch, std::size_t groups,
                  const std::uint8_t* in, std::uint8_t* residual, std::uint8_t* out) {
  std::uint8_t result = 0;
  const auto at = [&]<std::size_t kIndex>() {
    constexpr Traffic kTraffic = kTraffics[kIndex];
    if (traffic == kIndex)
      result = MoveBy<kTraffic.read_bits, kTraffic.write_bits, kTraffic.residual>(
          stream, prefetch, groups, in, residual, out);
  };
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    (at.template operator()<kIndex>(), ...);
  }
  (std::make_index_sequence<kTraffics.size()>());
  return result;
}

}  // namespace slimgrad::benchmarks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slimgrad::benchmarks {

HWY_EXPORT(Move);

void MoveMemory(const Backend& backend, const Traffic& traffic, const Variant& variant,
                std::size_t n, std::span<const std::byte> in, Out residual,
                std::span<std::byte> out) {
  const std::size_t all = n / kCeilingGroup;
  const auto line_bytes = [&](int bits) { return all * static_cast<std::size_t>(bits) * 64; };
  SLIMGRAD_CHECK(in.size() >= line_bytes(traffic.read_bits));
  SLIMGRAD_CHECK(out.size() >= line_bytes(traffic.write_bits));
  SLIMGRAD_CHECK(!traffic.residual || residual.size() >= all * kCeilingGroup);
  const auto* found = std::ranges::find(kTraffics, traffic.name, &Traffic::name);
  SLIMGRAD_CHECK(found != kTraffics.end());
  const auto index = static_cast<std::size_t>(found - kTraffics.begin());

  // As many elements a task as the kernels take.
  constexpr std::size_t kTaskGroups = (std::size_t{1} << 15) / kCeilingGroup;
  static std::atomic<std::uint8_t> sink;
  backend.executor->ParallelFor((all + kTaskGroups - 1) / kTaskGroups, [&](std::size_t task) {
    const std::size_t first = task * kTaskGroups;
    const std::size_t groups = std::min(kTaskGroups, all - first);
    const auto bytes_before = [&](int bits) { return first * static_cast<std::size_t>(bits) * 64; };
    sink.store(
        HWY_DYNAMIC_DISPATCH(Move)(
            index, variant.stream, variant.prefetch, groups,
            reinterpret_cast<const std::uint8_t*>(in.data()) + bytes_before(traffic.read_bits),
            reinterpret_cast<std::uint8_t*>(residual.data() + first * kCeilingGroup),
            reinterpret_cast<std::uint8_t*>(out.data()) + bytes_before(traffic.write_bits)),
        std::memory_order_relaxed);
  });
}

}  // namespace slimgrad::benchmarks
#endif  // HWY_ONCE
