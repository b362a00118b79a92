// Private to the cpu kernels: what the passes of top-k share. Compiled once for each instruction
// set, as simd-inl.h is.
#if defined(SLIMGRAD_KERNELS_SELECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIMGRAD_KERNELS_SELECT_INL_H_
#undef SLIMGRAD_KERNELS_SELECT_INL_H_
#else
#define SLIMGRAD_KERNELS_SELECT_INL_H_
#endif

#include <bit>

#include "kernels/cpu_select.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slimgrad::kernels::cpu::HWY_NAMESPACE {

using VI = hn::Vec<DI>;
using MI = hn::Mask<DI>;

HWY_INLINE VI MagnitudeOf(VF x) { return hn::BitCast(kI32, Magnitude(x)); }
HWY_INLINE VI MagnitudeAt(const float* at) { return MagnitudeOf(hn::LoadU(kF32, at)); }

// The largest magnitudes of kCount elements, lane by lane.
template <std::size_t kCount>
HWY_INLINE VI TopOf(const float* HWY_RESTRICT at) {
  VI top = hn::Zero(kI32);
  for (std::size_t i = 0; i < kCount; i += kLanes) top = hn::Max(top, MagnitudeAt(at + i));
  return top;
}

HWY_INLINE bool AnyAbove(VI top, std::int32_t limit) {
  return !hn::AllFalse(kI32, hn::Gt(top, hn::Set(kI32, limit)));
}

HWY_INLINE VU IndicesFrom(std::uint32_t first) { return hn::Iota(kU32, 0) + hn::Set(kU32, first); }

// Moves the lanes of a mask to the front, of several vectors.
class LanePacker {
 public:
  HWY_INLINE explicit LanePacker(MI mask) : mask_(mask) {
    if constexpr (kLanes <= 8) {
      std::uint64_t bits = 0;
      hn::StoreMaskBits(kI32, mask, reinterpret_cast<std::uint8_t*>(&bits));
      bits_ = static_cast<std::size_t>(bits);
    }
  }

  HWY_INLINE std::size_t count() const {
    if constexpr (kLanes <= 8) return static_cast<std::size_t>(std::popcount(bits_));
    return hn::CountTrue(kI32, mask_);
  }
  HWY_INLINE VI operator()(VI x) const {
    if constexpr (kLanes == 4) {
      const hn::Repartition<std::uint8_t, DI> u8;
      return hn::TableLookupBytes(x, hn::BitCast(kI32, hn::LoadU(u8, kBytesOfMask[bits_].data())));
    } else if constexpr (kLanes == 8) {
      const hn::Rebind<std::uint8_t, DI> u8;
      const VI lanes = hn::PromoteTo(kI32, hn::LoadU(u8, kLanesOfMask[bits_].data()));
      return hn::TableLookupLanes(x, hn::IndicesFromVec(kI32, lanes));
    } else {
      return hn::Compress(x, mask_);
    }
  }

 private:
  MI mask_;
  std::size_t bits_ = 0;
};

// Where the chosen elements of a chunk are written: a whole vector each time, whatever is behind.
struct Writer {
  std::uint32_t* HWY_RESTRICT indices;
  float* HWY_RESTRICT values;
  std::size_t count = 0;

  HWY_INLINE void Put(VU index, VF x, MI take) {
    const LanePacker pack(take);
    hn::StoreU(hn::BitCast(kU32, pack(hn::BitCast(kI32, index))), kU32, indices + count);
    hn::StoreU(hn::BitCast(kF32, pack(hn::BitCast(kI32, x))), kF32, values + count);
    count += pack.count();
  }
};

// Chunks of elements of 4 bytes on their way to an array, by the line where they are streamed.
template <class T>
class Outlet {
 public:
  Outlet(T* to, std::size_t room, bool stream) : room_(room), stream_(stream) {
    // As if its line began with elements that are there.
    before_ = stream ? reinterpret_cast<std::uintptr_t>(to) % 64 / sizeof(T) : 0;
    to_ = to - before_;
    room_ += before_;
    held_ = before_;
  }

  // Memory for a chunk and the vectors written over its end.
  T* Next() { return at_ + held_; }

  // The next n elements are there; what there is no room for is dropped.
  void Take(std::size_t n) {
    held_ += n;
    const std::size_t lines = held_ / kLine;
    if (lines == 0) return;
    if (stream_ && before_ == 0 && lines * kLine <= room_) {
      using D = hn::ScalableTag<T>;
      for (std::size_t i = 0; i < lines * kLine; i += kLanes)
        hn::Stream(hn::Load(D(), at_ + i), D(), to_ + i);
    } else {
      CopyOut(lines * kLine);
    }
    to_ += lines * kLine;
    room_ -= std::min(room_, lines * kLine);
    before_ = 0;
    held_ -= lines * kLine;
    std::memcpy(at_, at_ + lines * kLine, kLine * sizeof(T));
  }

  void Finish() {
    CopyOut(held_);
    if (stream_) FlushStream();
  }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(T);

  void CopyOut(std::size_t n) {
    const std::size_t end = std::min(n, room_);
    if (end > before_) std::memcpy(to_ + before_, at_ + before_, (end - before_) * sizeof(T));
  }

  HWY_ALIGN_MAX T at_[kLine + kChunk + kGroup];
  T* to_;
  std::size_t room_;
  bool stream_;
  std::size_t before_;
  std::size_t held_;
};

// The way to a sink. Elements are written to a cache first: vectors that overlap could not be
// streamed, nor end where the sink does.
class SinkWriter {
 public:
  explicit SinkWriter(Sink& sink)
      : sink_(sink),
        indices_(sink.indices, sink.room, sink.stream),
        values_(sink.values, sink.room, sink.stream) {}
  ~SinkWriter() {
    indices_.Finish();
    values_.Finish();
  }
  SinkWriter(const SinkWriter&) = delete;
  SinkWriter& operator=(const SinkWriter&) = delete;

  const Sink& sink() const { return sink_; }
  // For at most kChunk elements.
  Writer Next() { return {indices_.Next(), values_.Next()}; }
  void Take(std::size_t n) {
    indices_.Take(n);
    values_.Take(n);
    sink_.count += n;
  }

 private:
  Sink& sink_;
  Outlet<std::uint32_t> indices_;
  Outlet<float> values_;
};

}  // namespace slimgrad::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
