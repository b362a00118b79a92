#include <cmath>
#include <vector>

#include "core/check.h"
#include "kernels/elementwise.h"
#include "kernels/ref_lane_sum.h"
#include "kernels/sign.h"

namespace slimgrad::kernels::ref {
namespace {

void SetBits(In x, std::span<std::uint8_t> bits) {
  for (std::uint8_t& byte : bits) byte = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(x[i] < 0)) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] + (1 << i % 8));
}

// Members of block b, in order; what `keep` refuses stands as 0.
template <class Keep>
std::vector<float> Members(In x, std::size_t block, std::size_t b, Keep keep) {
  std::vector<float> members;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i / block == b) members.push_back(keep(x[i]) ? x[i] : 0);
  return members;
}

float Mean(const std::vector<float>& members, std::size_t count) {
  if (count == 0) return 0;
  const float sum = LaneSum<float>(members.size(), [&](std::size_t i) { return members[i]; });
  if (!std::isinf(sum) && !std::isnan(sum)) return sum / static_cast<float>(count);
  const double wide = LaneSum<double>(members.size(), [&](std::size_t i) { return members[i]; });
  return static_cast<float>(wide / static_cast<double>(count));
}

bool Bit(std::span<const std::uint8_t> bits, std::size_t i) {
  return (bits[i / 8] & (1 << i % 8)) != 0;
}

}  // namespace

void SignPack(const Backend&, In x, std::span<std::uint8_t> bits) {
  SLIMGRAD_CHECK(bits.size() == (x.size() + 7) / 8);
  SetBits(x, bits);
}

void SignUnpack(const Backend&, std::span<const std::uint8_t> bits, Out y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = Bit(bits, i) ? 1.0F : -1.0F;
}

void OneBitEncode(const Backend&, In x, std::size_t block, std::span<std::uint8_t> bits,
                  Out positive, Out negative) {
  SetBits(x, bits);
  for (std::size_t b = 0; b < positive.size(); ++b) {
    std::size_t positives = 0;
    std::size_t negatives = 0;
    for (std::size_t i = b * block; i < x.size() && i / block == b; ++i)
      ++(x[i] < 0 ? negatives : positives);
    positive[b] = Mean(Members(x, block, b, [](float value) { return !(value < 0); }), positives);
    negative[b] = Mean(Members(x, block, b, [](float value) { return value < 0; }), negatives);
  }
}

void OneBitEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                          std::span<std::uint8_t> bits, Out positive, Out negative) {
  AddSaturated(backend, x, residual);
  OneBitEncode(backend, residual, block, bits, positive, negative);
  OneBitDecodeAdd(backend, bits, positive, negative, block, -1.0F, residual);
}

void OneBitDecode(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                  In negative, std::size_t block, float weight, Out y) {
  for (float& element : y) element = 0;
  OneBitDecodeAdd(backend, bits, positive, negative, block, weight, y);
}

void OneBitDecodeAdd(const Backend&, std::span<const std::uint8_t> bits, In positive, In negative,
                     std::size_t block, float weight, Out y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float level = Bit(bits, i) ? positive[i / block] : negative[i / block];
    const float product = weight * level;
    y[i] = y[i] + product;
  }
}

void ScaledSignEncode(const Backend&, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale) {
  SetBits(x, bits);
  for (std::size_t b = 0; b < scale.size(); ++b) {
    std::vector<float> members = Members(x, block, b, [](float) { return true; });
    for (float& member : members)
      if (std::signbit(member)) member = -member;
    scale[b] = Mean(members, members.size());
  }
}

void ScaledSignEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                              std::span<std::uint8_t> bits, Out scale) {
  AddSaturated(backend, x, residual);
  ScaledSignEncode(backend, residual, block, bits, scale);
  ScaledSignDecodeAdd(backend, bits, scale, block, -1.0F, residual);
}

void ScaledSignDecode(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                      std::size_t block, float weight, Out y) {
  for (float& element : y) element = 0;
  ScaledSignDecodeAdd(backend, bits, scale, block, weight, y);
}

void ScaledSignDecodeAdd(const Backend&, std::span<const std::uint8_t> bits, In scale,
                         std::size_t block, float weight, Out y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float level = Bit(bits, i) ? scale[i / block] : -scale[i / block];
    const float product = weight * level;
    y[i] = y[i] + product;
  }
}

}  // namespace slimgrad::kernels::ref
