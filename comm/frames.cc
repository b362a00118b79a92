#include "comm/frames.h"

#include <fmt/format.h>

#include "kernels/cuda_stream.h"
#include "kernels/stamps.h"

namespace slimgrad {

std::span<const std::byte> SealFrameOn(const Backend& backend, std::span<std::byte> memory,
                                       const Payload& payload, const FrameInfo& info) {
  if (backend.device == Device::kCpu) return SealFrame(memory, payload, info);
  const std::span<std::byte> frame = memory.first(kFrameHeaderBytes + payload.body().size());
  kernels::WriteStamps(backend, FrameStamps(payload.view(), frame, info), frame);
  return frame;
}

Result<PayloadView> OpenFrameOn(const Backend& backend, std::span<const std::byte> frame,
                                const FrameInfo& expected, const OwnFrame& own, bool fixed_size) {
  if (backend.device == Device::kCpu) return OpenFrame(frame, expected);
  PayloadView view;
  if (fixed_size) {
    if (frame.size() != own.frame.size())
      return Corrupt(
          fmt::format("frame bytes: expected {}, found {}", own.frame.size(), frame.size()));
    view = own.payload.At(own.frame, frame);
  } else {
    if (frame.size() < kFrameHeaderBytes)
      return Corrupt(fmt::format("frame bytes: expected at least {}, found {}", kFrameHeaderBytes,
                                 frame.size()));
    SLIMGRAD_ASSIGN_OR_RETURN(
        view, PayloadView::Parse(frame.subspan(kFrameHeaderBytes), *backend.memory));
  }
  kernels::CheckStamps(backend, FrameStamps(view, frame, expected), frame, backend.cuda->faults());
  return view;
}

}  // namespace slimgrad
