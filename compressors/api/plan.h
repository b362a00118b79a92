// What is known about a compressor and a tensor before the first step: rounds, buffer sizes,
// claims.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "core/check.h"
#include "core/dtype.h"
#include "kernels/combine.h"

namespace slimgrad {

// How the ranks' payloads of a round meet.
struct Round {
  enum class Kind : std::uint8_t {
    kGather,   // every rank gets every payload, as frames
    kCombine,  // the payload is one section of `count` values of `dtype`; every rank gets `op` of
               // them all, without a frame
  };
  Kind kind = Kind::kGather;
  std::size_t bound = 0;  // kGather: bytes of body that a payload may need at most
  kernels::CombineOp op = kernels::CombineOp::kMean;
  DType dtype = DType::kF32;
  std::size_t count = 0;

  static Round Gather(std::size_t bound_bytes) {
    return {.kind = Kind::kGather, .bound = bound_bytes};
  }
  static Round Combine(kernels::CombineOp op, DType dtype, std::size_t count) {
    return {.kind = Kind::kCombine, .bound = 0, .op = op, .dtype = dtype, .count = count};
  }
};

// Claims about one rank's stateless compression x -> x_hat. The conformance suite tests each one
// that is made. `unbiased` and `delta` leave room for the roundings of fp32, but not for those of
// subnormal numbers: a level (a scale, a mean) below 2^-126 may round as far as to zero.
struct Traits {
  bool unbiased = false;             // E[x_hat] = x
  std::optional<double> delta = {};  // contractive: E|x_hat - x|^2 <= (1 - delta) |x|^2, in (0, 1]
  bool fixed_size = false;           // the payload's bytes depend on the tensor's spec only
  bool exact = false;                // x_hat = x, bit for bit, but that -0 may become +0
};

// A few rounds, held in place: plans are made within steps too, where nothing may be allocated.
class Rounds {
 public:
  Rounds() = default;
  Rounds(std::initializer_list<Round> rounds) {
    for (const Round& round : rounds) push_back(round);
  }
  void push_back(const Round& round) {
    SLIMGRAD_CHECK(size_ < rounds_.size());
    rounds_[size_++] = round;
  }
  std::size_t size() const { return size_; }
  const Round* begin() const { return rounds_.data(); }
  const Round* end() const { return rounds_.data() + size_; }
  Round& operator[](std::size_t i) { return rounds_[i]; }
  const Round& operator[](std::size_t i) const { return rounds_[i]; }

 private:
  std::array<Round, 8> rounds_ = {};
  std::size_t size_ = 0;
};

struct Plan {
  Rounds rounds = {};
  Traits traits = {};
  // Not empty when this tensor travels uncompressed although the method compresses: why. Reports
  // show it.
  std::string dense_reason = {};
};

}  // namespace slimgrad
