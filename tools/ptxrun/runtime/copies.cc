// Copies and fills: of bytes, of rows with a pitch, between devices.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/memory.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

// Rows of `width` bytes that start `pitch` bytes apart.
struct Shape {
  std::size_t width;
  std::size_t height;

  bool empty() const { return width == 0 || height == 0; }
  std::size_t Span(std::size_t pitch) const { return pitch * (height - 1) + width; }
};

template <class Pointer>
struct Rows {
  Pointer* first;
  std::size_t pitch;

  bool Holds(Shape shape, Place place) const { return IsInside(first, shape.Span(pitch), place); }
  auto* operator[](std::size_t row) const {
    using Byte = std::conditional_t<std::is_const_v<Pointer>, const std::uint8_t, std::uint8_t>;
    return static_cast<Byte*>(first) + row * pitch;
  }
};

cudaError_t CopyRows(Rows<void> to, Rows<const void> from, Shape shape, cudaMemcpyKind kind) {
  if (shape.empty()) return cudaSuccess;
  if (to.pitch < shape.width || from.pitch < shape.width) return cudaErrorInvalidPitchValue;
  if (const cudaError_t error = CheckCopy(to.first, from.first, 1, kind)) return error;
  if (!to.Holds(shape, Place::kAnywhere) || !from.Holds(shape, Place::kAnywhere)) {
    Complain("cudaMemcpy2D leaves its allocation");
    return cudaErrorInvalidValue;
  }
  for (std::size_t row = 0; row < shape.height; ++row)
    std::memmove(to[row], from[row], shape.width);
  return cudaSuccess;
}

cudaError_t FillBytes(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!IsInside(to, bytes, Place::kDevice)) return cudaErrorInvalidValue;
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t FillRows(Rows<void> to, int value, Shape shape) {
  if (shape.empty()) return cudaSuccess;
  if (!to.Holds(shape, Place::kDevice)) return cudaErrorInvalidValue;
  for (std::size_t row = 0; row < shape.height; ++row) std::memset(to[row], value, shape.width);
  return cudaSuccess;
}

template <class Call>
cudaError_t Now(Call call) {
  return OutsideCapture([&] { return Record(call()); });
}

}  // namespace

cudaError_t CheckCopy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  const bool within = kind == cudaMemcpyDeviceToDevice;
  const Place target = within || kind == cudaMemcpyHostToDevice ? Place::kDevice : Place::kAnywhere;
  const Place source = within || kind == cudaMemcpyDeviceToHost ? Place::kDevice : Place::kAnywhere;
  if (to != nullptr && from != nullptr && IsInside(to, bytes, target) &&
      IsInside(from, bytes, source))
    return cudaSuccess;
  Complain("cudaMemcpy of %zu bytes leaves its allocation, or its kind is wrong", bytes);
  return cudaErrorInvalidValue;
}

cudaError_t Copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t sticky = TheProcess().sticky_error) return sticky;
  if (const cudaError_t error = CheckCopy(to, from, bytes, kind)) return error;
  if (bytes > 0) std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace ptxrun

using ptxrun::Issue;
using ptxrun::Record;

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return ptxrun::Now([=] { return ptxrun::Copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  // A captured copy that cannot work is refused at its capture.
  if (const cudaError_t error = ptxrun::CheckCopy(to, from, bytes, kind)) return Record(error);
  return Issue(stream, cudaGraphNodeTypeMemcpy,
               [=] { return ptxrun::Copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return Issue(stream, cudaGraphNodeTypeMemcpy,
               [=] { return ptxrun::Copy(to, from, bytes, cudaMemcpyDeviceToDevice); });
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return ptxrun::Now([=] {
    return ptxrun::CopyRows({to, to_pitch}, {from, from_pitch}, {width, height}, kind);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return Issue(stream, cudaGraphNodeTypeMemcpy, [=] {
    return ptxrun::CopyRows({to, to_pitch}, {from, from_pitch}, {width, height}, kind);
  });
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return ptxrun::Now([=] { return ptxrun::FillBytes(to, value, bytes); });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0 && !ptxrun::IsInside(to, bytes, ptxrun::Place::kDevice))
    return Record(cudaErrorInvalidValue);
  return Issue(stream, cudaGraphNodeTypeMemset,
               [=] { return ptxrun::FillBytes(to, value, bytes); });
}

cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return ptxrun::Now([=] { return ptxrun::FillRows({to, pitch}, value, {width, height}); });
}

cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return Issue(stream, cudaGraphNodeTypeMemset, [=] {
    return ptxrun::FillRows({to, pitch}, value, {width, height});
  });
}

}  // extern "C"
