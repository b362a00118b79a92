// Exact top-k in one pass over memory:
//
// 1. A sample gives bounds of the k-th magnitude that hold in all probability (SampleBounds).
// 2. One pass lists the elements above the lower bound, little more than k, and counts those equal
//    to it. Many equal elements so cost nothing.
// 3. The k-th magnitude is selected among the few between the bounds (Settle).
// 4. The list, filtered, is the result.
//
// Where k is not small beside n, or equal elements have to be chosen from, step 4 reads the tensor
// again in place of a list. Where the bounds do not hold, the k-th magnitude comes from histograms.
//
// The tensor is cut into stripes by the number of threads; what is found is put together in their
// order, so that the cut does not show.
#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "core/check.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_select.h"
#include "kernels/elementwise.h"
#include "kernels/select.h"
#include "kernels/select_sample.h"

namespace slimgrad::kernels::cpu {
namespace {

// A list is made where k is at most this share of n; else it would cost more than a second pass.
constexpr std::size_t kListShare = 8;

std::size_t StripesOf(const Backend& backend, std::size_t n) {
  const auto threads = static_cast<std::size_t>(backend.executor->concurrency());
  return threads == 1 ? 1 : std::clamp<std::size_t>(4 * threads, 1, n / kTaskElements + 1);
}

void CutStripes(std::size_t n, std::span<Stripe> stripes) {
  const std::size_t step = (n / stripes.size() + 64) / 64 * 64;
  for (std::size_t s = 0; s < stripes.size(); ++s) {
    stripes[s] = {};
    stripes[s].begin = std::min(n, s * step);
    stripes[s].end = std::min(n, (s + 1) * step);
  }
}

// Whether so many chosen elements are better written past the caches.
bool Streams(std::size_t elements) {
  return OutgrowsCaches(elements * (sizeof(std::uint32_t) + sizeof(float)));
}

// Memory for `total` elements found. Of many stripes, most find about their share.
void TakeLists(ScratchScope& scope, std::size_t total, std::span<Stripe> stripes) {
  const std::size_t share = stripes.size() <= 4 ? total : total / stripes.size() * 4;
  for (Stripe& stripe : stripes) {
    const std::size_t room = WithSlack(std::min(share, stripe.end - stripe.begin));
    stripe.list = {scope.Take<std::uint32_t>(room).data(), scope.Take<float>(room).data(), room,
                   Streams(total)};
  }
}

// The same, but all may lie in one stripe.
void TakeBands(ScratchScope& scope, std::size_t total, std::span<Stripe> stripes) {
  for (Stripe& stripe : stripes) {
    stripe.band_room = WithSlack(std::min(total, stripe.end - stripe.begin));
    stripe.band = scope.Take<std::int32_t>(stripe.band_room).data();
  }
}

template <class Count>
std::size_t Sum(std::span<const Stripe> stripes, Count count) {
  std::size_t sum = 0;
  for (const Stripe& stripe : stripes) sum += std::invoke(count, stripe);
  return sum;
}

// The cut of the k largest of what the stripes found; nothing where the bounds do not hold.
std::optional<Cut> Settle(Scratch& scratch, std::span<const Stripe> stripes, Bounds bounds,
                          std::size_t k) {
  if (std::ranges::any_of(stripes, &Stripe::BandOverflowed)) return std::nullopt;
  const std::size_t above = Sum(stripes, &Stripe::above);
  const std::size_t banded = Sum(stripes, &Stripe::banded);
  if (above > k || k > above + banded + Sum(stripes, &Stripe::ties)) return std::nullopt;
  const std::size_t rank = k - above;
  if (rank == 0) return Cut{bounds.upper, 0};
  if (rank > banded) return Cut{bounds.lower, rank - banded};

  ScratchScope scope(scratch);
  const std::span<std::int32_t> all = scope.Take<std::int32_t>(banded);
  std::size_t copied = 0;
  for (const Stripe& stripe : stripes) {
    std::copy_n(stripe.band, stripe.banded, all.data() + copied);
    copied += stripe.banded;
  }
  return SelectRank(all.data(), banded, rank);
}

// Gives each stripe its part of the cut and of the result.
void Place(Cut cut, Bounds bounds, std::span<std::uint32_t> indices, Out values,
           std::span<Stripe> stripes) {
  std::size_t placed = 0;
  for (Stripe& stripe : stripes) {
    const std::span<const std::int32_t> band(stripe.band, stripe.banded);
    const auto larger = static_cast<std::size_t>(
        std::ranges::count_if(band, [&](std::int32_t m) { return m > cut.magnitude; }));
    const auto equal = static_cast<std::size_t>(std::ranges::count(band, cut.magnitude)) +
                       (cut.magnitude == bounds.lower ? stripe.ties : 0);
    stripe.cut = {cut.magnitude, std::min(equal, cut.ties)};
    const std::size_t taken = stripe.above + larger + stripe.cut.ties;
    stripe.out = {indices.data() + placed, values.data() + placed, taken, Streams(indices.size())};
    placed += taken;
    cut.ties -= stripe.cut.ties;
  }
  SLIMGRAD_CHECK(placed == indices.size());
}

class Selection {
 public:
  Selection(const Backend& backend, Scratch& scratch, In x, Out residual,
            std::span<std::uint32_t> indices, Out values)
      : backend_(backend),
        scratch_(scratch),
        x_(x),
        residual_(residual),
        indices_(indices),
        values_(values) {}

  void Run() {
    const std::size_t n = x_.size();
    if (indices_.empty()) return AddFeedback();
    if (n <= kDirectElements) return RunDirect();
    ScratchScope scope(scratch_);
    stripes_ = scope.Take<Stripe>(StripesOf(backend_, n));
    bounds_ = SampleBounds(scratch_, x_, residual_, indices_.size());
    if (!(indices_.size() <= n / kListShare ? RunListed() : RunUnlisted())) RunExact();
  }

 private:
  void AddFeedback() {
    if (residual_.empty() || added_) return;
    AddSaturated(backend_, x_, residual_);
    MarkAdded();
  }
  void MarkAdded() {
    if (residual_.empty()) return;
    x_ = residual_;
    added_ = true;
  }

  void RunDirect() {
    AddFeedback();
    ScratchScope scope(scratch_);
    const std::span<std::int32_t> magnitudes = scope.Take<std::int32_t>(x_.size());
    Magnitudes(x_.data(), x_.size(), magnitudes.data());
    const Cut cut = SelectRank(magnitudes.data(), x_.size(), indices_.size());
    Sink out = {indices_.data(), values_.data(), indices_.size()};
    Filter({x_.data(), nullptr, 0, x_.size()}, cut, residual_.data(), kLargestMagnitude, out);
  }

  // False where the bounds do not hold, as RunUnlisted would find too.
  bool RunListed() {
    ScratchScope scope(scratch_);
    const Widths widths = WidthsOf(x_.size(), indices_.size());
    CutStripes(x_.size(), stripes_);
    TakeLists(scope, widths.above_lower, stripes_);
    TakeBands(scope, widths.between, stripes_);
    CollectAll(Collect::kListAndBand);
    const std::optional<Cut> cut = Settle(scratch_, stripes_, bounds_, indices_.size());
    // What a list had no room for is in the bands and counts nevertheless.
    if (!cut || std::ranges::any_of(stripes_, &Stripe::ListOverflowed) ||
        (cut->magnitude == bounds_.lower && cut->ties > 0)) {
      RestoreFromLists();
      if (cut) FilterAll(*cut);
      return cut.has_value();
    }
    Place(*cut, bounds_, indices_, values_, stripes_);
    ForStripes([&](Stripe& stripe) {
      const Sink& list = stripe.list;
      Filter({list.values, list.indices, 0, list.count}, stripe.cut, residual_.data(),
             bounds_.guess, stripe.out);
    });
    return true;
  }

  // False where the bounds do not hold.
  bool RunUnlisted() {
    ScratchScope scope(scratch_);
    CutStripes(x_.size(), stripes_);
    TakeBands(scope, WidthsOf(x_.size(), indices_.size()).between, stripes_);
    CollectAll(Collect::kBand);
    const std::optional<Cut> cut = Settle(scratch_, stripes_, bounds_, indices_.size());
    if (cut) FilterAll(*cut);
    return cut.has_value();
  }

  void RunExact() {
    ScratchScope scope(scratch_);
    CutStripes(x_.size(), stripes_);
    TakeBands(scope, 0, stripes_);
    const Cut cut = ExactCut(backend_, scratch_, stripes_, x_, indices_.size());
    bounds_ = {cut.magnitude, cut.magnitude, cut.magnitude};
    CollectAll(Collect::kBand);
    FilterAll(cut);
  }

  // Also adds x to the residual, once.
  void CollectAll(Collect what) {
    float* residual = added_ ? nullptr : residual_.data();
    ForStripes([&](Stripe& stripe) { CollectStripe(x_.data(), residual, bounds_, what, stripe); });
    MarkAdded();
  }

  // Brings back what the pass cleared.
  void RestoreFromLists() {
    if (residual_.empty()) return;
    ForStripes([&](Stripe& stripe) {
      const std::size_t listed = std::min(stripe.list.count, stripe.list.room);
      for (std::size_t j = 0; j < listed; ++j)
        residual_[stripe.list.indices[j]] = stripe.list.values[j];
    });
  }

  void FilterAll(Cut cut) {
    Place(cut, bounds_, indices_, values_, stripes_);
    ForStripes([&](Stripe& stripe) {
      Filter({x_.data() + stripe.begin, nullptr, static_cast<std::uint32_t>(stripe.begin),
              stripe.end - stripe.begin},
             stripe.cut, residual_.data(), kLargestMagnitude, stripe.out);
    });
  }

  template <class Work>
  void ForStripes(Work work) {
    backend_.executor->ParallelFor(stripes_.size(), [&](std::size_t s) { work(stripes_[s]); });
  }

  const Backend& backend_;
  Scratch& scratch_;
  In x_;
  Out residual_;        // empty without feedback
  bool added_ = false;  // x is in the residual, and x_ is the residual
  std::span<std::uint32_t> indices_;
  Out values_;
  std::span<Stripe> stripes_;
  Bounds bounds_;
};

// The stripes' lists one behind the other, as far as there is room; what a list had no room for is
// read again.
void CopyLists(const Backend& backend, In x, Cut cut, std::span<std::uint32_t> indices, Out values,
               std::span<Stripe> stripes) {
  std::size_t placed = 0;
  for (Stripe& stripe : stripes) {
    const std::size_t room = std::min(stripe.list.count, indices.size() - placed);
    stripe.out = {indices.data() + placed, values.data() + placed, room};
    placed += room;
  }
  backend.executor->ParallelFor(stripes.size(), [&](std::size_t s) {
    Stripe& stripe = stripes[s];
    if (stripe.out.room <= stripe.list.room) {
      std::copy_n(stripe.list.indices, stripe.out.room, stripe.out.indices);
      std::copy_n(stripe.list.values, stripe.out.room, stripe.out.values);
      return;
    }
    Filter({x.data() + stripe.begin, nullptr, static_cast<std::uint32_t>(stripe.begin),
            stripe.end - stripe.begin},
           cut, nullptr, kLargestMagnitude, stripe.out);
  });
}

}  // namespace

void TopK(const Backend& backend, Scratch& scratch, In x, std::span<std::uint32_t> indices,
          Out values) {
  Selection(backend, scratch, x, {}, indices, values).Run();
}

void TopKFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                  std::span<std::uint32_t> indices, Out values) {
  Selection(backend, scratch, x, residual, indices, values).Run();
}

void ThresholdSelect(const Backend& backend, Scratch& scratch, In x, float threshold,
                     std::span<std::uint32_t> indices, Out values, std::uint64_t* found) {
  // -1 for a threshold of 0: all elements are above it.
  const std::int32_t below = (std::bit_cast<std::int32_t>(threshold) & kLargestMagnitude) - 1;
  const Bounds bounds = {below, kLargestMagnitude, kLargestMagnitude};
  ScratchScope scope(scratch);
  const std::span<Stripe> stripes = scope.Take<Stripe>(StripesOf(backend, x.size()));
  CutStripes(x.size(), stripes);
  if (stripes.size() == 1) {
    stripes[0].list = {indices.data(), values.data(), indices.size(), Streams(indices.size())};
  } else {
    TakeLists(scope, indices.size(), stripes);
  }
  backend.executor->ParallelFor(stripes.size(), [&](std::size_t s) {
    CollectStripe(x.data(), nullptr, bounds, Collect::kList, stripes[s]);
  });
  if (stripes.size() > 1) CopyLists(backend, x, {below, 0}, indices, values, stripes);
  *found = Sum(stripes, [](const Stripe& stripe) { return stripe.list.count; });
}

}  // namespace slimgrad::kernels::cpu
