// The implementation under test, by the names of the kernels: that of the CPU, or, in a program of
// cuda_test, that of the GPU, with every argument copied to the device and back.
//
//   subject::F32ToF16(backend, x, codes, overflow, &count);
//
// On the device a span begins at the same distance from 16 bytes as on the host, and has no byte
// more than it needs, so that ptxrun finds what reaches beyond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"

#include "core/buffer.h"
#include "core/scratch.h"
#include "kernels/backend.h"
#include "kernels/combine.h"
#include "kernels/convert.h"
#include "kernels/cuda_stream.h"
#include "kernels/elementwise.h"
#include "kernels/float8.h"
#include "kernels/index_code.h"
#include "kernels/low_rank.h"
#include "kernels/qsgd.h"
#include "kernels/quantize.h"
#include "kernels/random.h"
#include "kernels/select.h"
#include "kernels/sign.h"
#include "kernels/stamps.h"
#include "kernels/sums.h"
#include "tests/kernels/inputs.h"

namespace slimgrad::kernels {

// One call's arguments on the device.
class Staging {
 public:
  explicit Staging(CudaStream& stream) : stream_(stream), scratch_(stream.memory()) {}

  template <class T>
  std::span<T> operator()(std::span<T> span) {
    if constexpr (std::is_same_v<T, const std::span<const std::byte>>) {
      std::vector<std::span<const std::byte>>& inner = lists_.emplace_back();
      for (std::span<const std::byte> one : span) inner.push_back((*this)(one));
      return inner;
    } else {
      return {reinterpret_cast<T*>(OnDevice(span.data(), span.size_bytes(), !std::is_const_v<T>)),
              span.size()};
    }
  }
  std::uint64_t* operator()(std::uint64_t* number) {
    if (number == nullptr) return nullptr;
    return reinterpret_cast<std::uint64_t*>(OnDevice(number, sizeof *number, true));
  }
  ConstView operator()(const ConstView& view) {
    return {OnDevice(view.data, view.numel * SizeOf(view.dtype), false), view.numel, view.dtype,
            Device::kCuda};
  }
  View operator()(const View& view) {
    return {OnDevice(view.data, view.numel * SizeOf(view.dtype), true), view.numel, view.dtype,
            Device::kCuda};
  }
  Scratch& operator()(Scratch&) { return scratch_; }
  template <class T>
  const T& operator()(const T& other) {
    return other;
  }

  // Waits, and copies back what the call may have written.
  Status Finish() {
    Status status = stream_.Wait();
    for (const Copy& copy : copies_)
      if (copy.written) stream_.memory().Read(copy.host, copy.device, copy.bytes);
    return status;
  }

 private:
  struct Copy {
    std::byte* host;
    std::byte* device;
    std::size_t bytes;
    bool written;
  };

  // Memory that a call names twice, as it may where results replace their input, is there once.
  std::byte* OnDevice(const void* data, std::size_t bytes, bool written) {
    auto* const host = static_cast<std::byte*>(const_cast<void*>(data));
    for (Copy& copy : copies_)
      if (copy.host == host && copy.bytes == bytes && bytes > 0) {
        copy.written |= written;
        return copy.device;
      }
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(data) % 16;
    buffers_.emplace_back(offset + bytes, stream_.memory());
    std::byte* const device = buffers_.back().data() + (bytes > 0 ? offset : 0);
    stream_.memory().Write(device, host, bytes);
    copies_.push_back({host, device, bytes, written});
    return device;
  }

  CudaStream& stream_;
  Scratch scratch_;
  std::deque<Buffer<std::byte>> buffers_;
  std::deque<std::vector<std::span<const std::byte>>> lists_;
  std::vector<Copy> copies_;
};

template <class Function>
struct Subject;

template <class R, class... Parameters>
struct Subject<R(const Backend&, Parameters...)> {
  R (*function)(const Backend&, Parameters...);

  R operator()(const Backend& backend, Parameters... arguments) const {
    CudaStream* const stream = SubjectStream();
    if (stream == nullptr) return function(backend, arguments...);
    Staging staging(*stream);
    Backend cuda = stream->backend();
    cuda.only_if = staging(const_cast<std::uint64_t*>(backend.only_if));
    // In braces: in this order.
    const std::tuple<const Backend&, Parameters...> on_device = {cuda, staging(arguments)...};
    return Call(staging, on_device);
  }

 private:
  template <class Tuple>
  R Call(Staging& staging, const Tuple& arguments) const {
    if constexpr (std::is_void_v<R>) {
      std::apply(function, arguments);
      const Status status = staging.Finish();
      EXPECT_TRUE(status.ok()) << status.message();
    } else {
      R result = std::apply(function, arguments);
      Status status = staging.Finish();
      if constexpr (std::is_same_v<R, Status>)
        return result.ok() ? status : result;
      else
        return result;
    }
  }
};

}  // namespace slimgrad::kernels

#define SLIMGRAD_SUBJECT(function) \
  inline constexpr Subject<decltype(kernels::function)> function = {kernels::function}

namespace slimgrad::kernels::subject {
SLIMGRAD_SUBJECT(Combine);
SLIMGRAD_SUBJECT(F32ToF16);
SLIMGRAD_SUBJECT(F32ToBF16);
SLIMGRAD_SUBJECT(F32ToF16Feedback);
SLIMGRAD_SUBJECT(F32ToBF16Feedback);
SLIMGRAD_SUBJECT(F16ToF32);
SLIMGRAD_SUBJECT(BF16ToF32);
SLIMGRAD_SUBJECT(F16DecodeAdd);
SLIMGRAD_SUBJECT(BF16DecodeAdd);
SLIMGRAD_SUBJECT(F16Decode);
SLIMGRAD_SUBJECT(BF16Decode);
SLIMGRAD_SUBJECT(Copy);
SLIMGRAD_SUBJECT(F32ToF8);
SLIMGRAD_SUBJECT(F32ToF8Feedback);
SLIMGRAD_SUBJECT(F8ToF32);
SLIMGRAD_SUBJECT(F8Decode);
SLIMGRAD_SUBJECT(F8DecodeAdd);
SLIMGRAD_SUBJECT(Widen);
SLIMGRAD_SUBJECT(Narrow);
SLIMGRAD_SUBJECT(CopyBytes);
SLIMGRAD_SUBJECT(Fill);
SLIMGRAD_SUBJECT(AddScaled);
SLIMGRAD_SUBJECT(AddSaturated);
SLIMGRAD_SUBJECT(Divide);
SLIMGRAD_SUBJECT(CountNonFinite);
SLIMGRAD_SUBJECT(DeltaEncode);
SLIMGRAD_SUBJECT(DeltaDecode);
SLIMGRAD_SUBJECT(MultiplyRight);
SLIMGRAD_SUBJECT(MultiplyRightFeedback);
SLIMGRAD_SUBJECT(MultiplyLeft);
SLIMGRAD_SUBJECT(AddOuter);
SLIMGRAD_SUBJECT(Outer);
SLIMGRAD_SUBJECT(OuterFeedback);
SLIMGRAD_SUBJECT(Orthonormalize);
SLIMGRAD_SUBJECT(QsgdEncode);
SLIMGRAD_SUBJECT(QsgdEncodeFeedback);
SLIMGRAD_SUBJECT(QsgdDecode);
SLIMGRAD_SUBJECT(QsgdDecodeAdd);
SLIMGRAD_SUBJECT(Int8Encode);
SLIMGRAD_SUBJECT(Int4Encode);
SLIMGRAD_SUBJECT(Int8EncodeFeedback);
SLIMGRAD_SUBJECT(Int4EncodeFeedback);
SLIMGRAD_SUBJECT(Int8Decode);
SLIMGRAD_SUBJECT(Int4Decode);
SLIMGRAD_SUBJECT(Int8DecodeAdd);
SLIMGRAD_SUBJECT(Int4DecodeAdd);
SLIMGRAD_SUBJECT(FillRandom16);
SLIMGRAD_SUBJECT(TopK);
SLIMGRAD_SUBJECT(TopKFeedback);
SLIMGRAD_SUBJECT(ThresholdSelect);
SLIMGRAD_SUBJECT(ScatterAdd);
SLIMGRAD_SUBJECT(Scatter);
SLIMGRAD_SUBJECT(SignPack);
SLIMGRAD_SUBJECT(SignUnpack);
SLIMGRAD_SUBJECT(OneBitEncode);
SLIMGRAD_SUBJECT(OneBitEncodeFeedback);
SLIMGRAD_SUBJECT(OneBitDecode);
SLIMGRAD_SUBJECT(OneBitDecodeAdd);
SLIMGRAD_SUBJECT(ScaledSignEncode);
SLIMGRAD_SUBJECT(ScaledSignEncodeFeedback);
SLIMGRAD_SUBJECT(ScaledSignDecode);
SLIMGRAD_SUBJECT(ScaledSignDecodeAdd);
SLIMGRAD_SUBJECT(WriteStamps);
SLIMGRAD_SUBJECT(CheckStamps);
SLIMGRAD_SUBJECT(SumSquares);
SLIMGRAD_SUBJECT(Dot);
SLIMGRAD_SUBJECT(SumSquaredDifferences);
}  // namespace slimgrad::kernels::subject
