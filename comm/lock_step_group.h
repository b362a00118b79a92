// All ranks in one object on one thread, in lock step: the simulator's and most tests' group.
// Nothing is copied between ranks, so traffic is what the same calls move in a threads group (a
// test holds them together).
#pragma once

#include <vector>

#include "comm/group.h"

namespace slimgrad {

class LockStepGroup final : public Group {
 public:
  // size >= 1 (CHECKed). Combined messages lie in the backend's memory, and are combined on its
  // stream.
  explicit LockStepGroup(int size, Backend backend = {});

  int size() const override { return static_cast<int>(ranks_.size()); }
  bool TakesMessagesOn(const Backend& backend) const override {
    return backend.device == Device::kCpu ||
           (backend.device == backend_.device && backend.cuda == backend_.cuda);
  }
  std::span<const int> local_ranks() const override { return ranks_; }
  Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                           TrafficRow& traffic) override;
  Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                    std::span<std::byte> result, TrafficRow& traffic) override;

 private:
  std::vector<int> ranks_;
  Backend backend_;
};

}  // namespace slimgrad
