// The public functions of all families but those that share a call (quantize.cc): each checks what
// the contract says of its arguments, so that no implementation has to, and picks the one of its
// backend's device. The next device changes SLIMGRAD_DISPATCH (kernels/backend.h) and no family.
#include <string>

#include "core/check.h"
#include "kernels/backend.h"
#include "kernels/combine.h"
#include "kernels/convert.h"
#include "kernels/cuda_stream.h"
#include "kernels/elementwise.h"
#include "kernels/index_code.h"
#include "kernels/low_rank.h"
#include "kernels/random.h"
#include "kernels/select.h"
#include "kernels/sign.h"
#include "kernels/stamps.h"
#include "kernels/sums.h"

namespace slimgrad::kernels {

Status Wait(const Backend& backend) {
  return backend.cuda == nullptr ? Status() : backend.cuda->Wait();
}

// --- combine

void Combine(const Backend& backend, CombineOp op, DType dtype,
             std::span<const std::span<const std::byte>> inputs, std::span<std::byte> to) {
  SLIMGRAD_CHECK(CanCombine(op, dtype) && !inputs.empty() && to.size() % SizeOf(dtype) == 0);
  for (const auto& input : inputs) SLIMGRAD_CHECK(input.size() == to.size());
  SLIMGRAD_DISPATCH(backend, Combine, op, dtype, inputs, to);
}

// --- convert

void F32ToF16(const Backend& backend, In from, std::span<half_bits> to, Overflow overflow,
              std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F32ToF16, from, to, overflow, overflowed);
}

void F32ToBF16(const Backend& backend, In from, std::span<bfloat16_bits> to, Overflow overflow,
               std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F32ToBF16, from, to, overflow, overflowed);
}

void F32ToF16Feedback(const Backend& backend, In x, Out residual, std::span<half_bits> to,
                      Overflow overflow, std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(x.size() == to.size() && residual.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F32ToF16Feedback, x, residual, to, overflow, overflowed);
}

void F32ToBF16Feedback(const Backend& backend, In x, Out residual, std::span<bfloat16_bits> to,
                       Overflow overflow, std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(x.size() == to.size() && residual.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F32ToBF16Feedback, x, residual, to, overflow, overflowed);
}

void F16ToF32(const Backend& backend, std::span<const half_bits> from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, F16ToF32, from, to);
}

void BF16ToF32(const Backend& backend, std::span<const bfloat16_bits> from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, BF16ToF32, from, to);
}

void F16DecodeAdd(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  SLIMGRAD_DISPATCH(backend, F16DecodeAdd, from, weight, y);
}

void F16Decode(const Backend& backend, std::span<const half_bits> from, float weight, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  SLIMGRAD_DISPATCH(backend, F16Decode, from, weight, y);
}

void BF16DecodeAdd(const Backend& backend, std::span<const bfloat16_bits> from, float weight,
                   Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  SLIMGRAD_DISPATCH(backend, BF16DecodeAdd, from, weight, y);
}

void BF16Decode(const Backend& backend, std::span<const bfloat16_bits> from, float weight, Out y) {
  SLIMGRAD_CHECK(from.size() == y.size());
  SLIMGRAD_DISPATCH(backend, BF16Decode, from, weight, y);
}

void Copy(const Backend& backend, In from, Out to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, Copy, from, to);
}

void Widen(const Backend& backend, const ConstView& from, Out to) {
  SLIMGRAD_CHECK(from.device == backend.device);
  switch (from.dtype) {
    case DType::kF16: return F16ToF32(backend, from.As<half_bits>(), to);
    case DType::kBF16: return BF16ToF32(backend, from.As<bfloat16_bits>(), to);
    default: return Copy(backend, from.As<float>(), to);
  }
}

void Narrow(const Backend& backend, In from, const View& to, Overflow overflow,
            std::uint64_t* overflowed) {
  SLIMGRAD_CHECK(to.device == backend.device);
  switch (to.dtype) {
    case DType::kF16: return F32ToF16(backend, from, to.As<half_bits>(), overflow, overflowed);
    case DType::kBF16:
      return F32ToBF16(backend, from, to.As<bfloat16_bits>(), overflow, overflowed);
    default: return Copy(backend, from, to.As<float>());
  }
}

// --- elementwise

void CopyBytes(const Backend& backend, std::span<const std::byte> from, std::span<std::byte> to) {
  SLIMGRAD_CHECK(from.size() == to.size());
  SLIMGRAD_DISPATCH(backend, CopyBytes, from, to);
}

void Fill(const Backend& backend, float value, Out y) {
  SLIMGRAD_DISPATCH(backend, Fill, value, y);
}

void AddScaled(const Backend& backend, In x, float weight, Out y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  SLIMGRAD_DISPATCH(backend, AddScaled, x, weight, y);
}

void AddSaturated(const Backend& backend, In x, Out y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  SLIMGRAD_DISPATCH(backend, AddSaturated, x, y);
}

void Divide(const Backend& backend, float divisor, Out y, std::uint64_t* non_finite) {
  SLIMGRAD_DISPATCH(backend, Divide, divisor, y, non_finite);
}

void CountNonFinite(const Backend& backend, const ConstView& x, std::uint64_t* count) {
  SLIMGRAD_CHECK(x.device == backend.device);
  SLIMGRAD_CHECK(x.dtype == DType::kF32 || x.dtype == DType::kF16 || x.dtype == DType::kBF16);
  SLIMGRAD_DISPATCH(backend, CountNonFinite, x, count);
}

// --- index_code

std::size_t DeltaEncode(const Backend& backend, std::span<const std::uint32_t> indices,
                        std::span<std::uint8_t> code) {
  SLIMGRAD_CHECK(code.size() >= DeltaBound(indices.size()));
  SLIMGRAD_DISPATCH(backend, DeltaEncode, indices, code);
}

Status DeltaDecode(const Backend& backend, std::span<const std::uint8_t> code,
                   std::span<std::uint32_t> indices) {
  SLIMGRAD_DISPATCH(backend, DeltaDecode, code, indices);
}

// --- low_rank

namespace {

void CheckMatrix(std::size_t size, std::size_t rows, std::size_t cols) {
  SLIMGRAD_CHECK(cols == 0 ? size == 0 : size % cols == 0 && size / cols == rows);
}

void CheckProduct(std::size_t m, std::size_t rows, std::size_t cols, std::size_t p, std::size_t q,
                  std::size_t rank) {
  SLIMGRAD_CHECK(rank <= rows && rank <= cols);
  CheckMatrix(m, rows, cols);
  CheckMatrix(p, rows, rank);
  CheckMatrix(q, cols, rank);
}

}  // namespace

void MultiplyRight(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                   std::size_t cols, In q, std::size_t rank, Out p) {
  CheckProduct(m.size(), rows, cols, p.size(), q.size(), rank);
  SLIMGRAD_DISPATCH(backend, MultiplyRight, scratch, m, rows, cols, q, rank, p);
}

void MultiplyRightFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                           std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p) {
  CheckProduct(x.size(), rows, cols, p.size(), q.size(), rank);
  SLIMGRAD_CHECK(residual.size() == x.size());
  SLIMGRAD_DISPATCH(backend, MultiplyRightFeedback, scratch, x, residual, rows, cols, q, rank, p);
}

void MultiplyLeft(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                  std::size_t cols, In p, std::size_t rank, Out q) {
  CheckProduct(m.size(), rows, cols, p.size(), q.size(), rank);
  SLIMGRAD_DISPATCH(backend, MultiplyLeft, scratch, m, rows, cols, p, rank, q);
}

void AddOuter(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
              std::size_t cols, std::size_t rank, float weight, Out m) {
  CheckProduct(m.size(), rows, cols, p.size(), q.size(), rank);
  SLIMGRAD_DISPATCH(backend, AddOuter, scratch, p, q, rows, cols, rank, weight, m);
}

void Outer(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows, std::size_t cols,
           std::size_t rank, Out m) {
  CheckProduct(m.size(), rows, cols, p.size(), q.size(), rank);
  SLIMGRAD_DISPATCH(backend, Outer, scratch, p, q, rows, cols, rank, m);
}

void OuterFeedback(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
                   std::size_t cols, std::size_t rank, Out average, Out residual) {
  CheckProduct(average.size(), rows, cols, p.size(), q.size(), rank);
  SLIMGRAD_CHECK(residual.size() == average.size());
  SLIMGRAD_DISPATCH(backend, OuterFeedback, scratch, p, q, rows, cols, rank, average, residual);
}

void Orthonormalize(const Backend& backend, Scratch& scratch, std::size_t rows, std::size_t rank,
                    const RandomKey& key, Out p) {
  SLIMGRAD_CHECK(rank <= rows);
  CheckMatrix(p.size(), rows, rank);
  SLIMGRAD_DISPATCH(backend, Orthonormalize, scratch, rows, rank, key, p);
}

// --- random

void FillRandom16(const Backend& backend, const RandomKey& key, std::uint64_t first,
                  std::span<std::uint16_t> to) {
  SLIMGRAD_DISPATCH(backend, FillRandom16, key, first, to);
}

// --- select

namespace {

void CheckSelect(In x, std::span<std::uint32_t> indices, Out values) {
  SLIMGRAD_CHECK(values.size() == indices.size() && x.size() <= std::size_t{1} << 32);
}

// Entries come from other ranks.
Status CheckEntries(std::span<const std::uint32_t> indices, In values) {
  if (values.size() == indices.size()) return {};
  return Corrupt("values: expected " + std::to_string(indices.size()) +
                 ", as many as indices, found " + std::to_string(values.size()));
}

}  // namespace

void TopK(const Backend& backend, Scratch& scratch, In x, std::span<std::uint32_t> indices,
          Out values) {
  CheckSelect(x, indices, values);
  SLIMGRAD_CHECK(indices.size() <= x.size());
  SLIMGRAD_DISPATCH(backend, TopK, scratch, x, indices, values);
}

void TopKFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                  std::span<std::uint32_t> indices, Out values) {
  CheckSelect(x, indices, values);
  SLIMGRAD_CHECK(indices.size() <= x.size() && residual.size() == x.size());
  SLIMGRAD_DISPATCH(backend, TopKFeedback, scratch, x, residual, indices, values);
}

void ThresholdSelect(const Backend& backend, Scratch& scratch, In x, float threshold,
                     std::span<std::uint32_t> indices, Out values, std::uint64_t* found) {
  CheckSelect(x, indices, values);
  SLIMGRAD_CHECK(threshold >= 0);
  SLIMGRAD_DISPATCH(backend, ThresholdSelect, scratch, x, threshold, indices, values, found);
}

Status ScatterAdd(const Backend& backend, std::span<const std::uint32_t> indices, In values,
                  float weight, Out y) {
  SLIMGRAD_RETURN_IF_ERROR(CheckEntries(indices, values));
  SLIMGRAD_DISPATCH(backend, ScatterAdd, indices, values, weight, y);
}

Status Scatter(const Backend& backend, std::span<const std::uint32_t> indices, In values,
               float weight, Out y) {
  SLIMGRAD_RETURN_IF_ERROR(CheckEntries(indices, values));
  SLIMGRAD_DISPATCH(backend, Scatter, indices, values, weight, y);
}

// --- sign

namespace {

void CheckSigns(std::size_t n, std::size_t block, std::size_t bits, std::size_t levels) {
  SLIMGRAD_CHECK(block > 0 && bits == BitBytes(n) && levels == BlockCount(n, block));
}

}  // namespace

void SignPack(const Backend& backend, In x, std::span<std::uint8_t> bits) {
  SLIMGRAD_CHECK(bits.size() == BitBytes(x.size()));
  SLIMGRAD_DISPATCH(backend, SignPack, x, bits);
}

void SignUnpack(const Backend& backend, std::span<const std::uint8_t> bits, Out y) {
  SLIMGRAD_CHECK(bits.size() == BitBytes(y.size()));
  SLIMGRAD_DISPATCH(backend, SignUnpack, bits, y);
}

void OneBitEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                  Out positive, Out negative) {
  CheckSigns(x.size(), block, bits.size(), positive.size());
  SLIMGRAD_CHECK(negative.size() == positive.size());
  SLIMGRAD_DISPATCH(backend, OneBitEncode, x, block, bits, positive, negative);
}

void OneBitEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                          std::span<std::uint8_t> bits, Out positive, Out negative) {
  CheckSigns(x.size(), block, bits.size(), positive.size());
  SLIMGRAD_CHECK(negative.size() == positive.size() && residual.size() == x.size());
  SLIMGRAD_DISPATCH(backend, OneBitEncodeFeedback, x, residual, block, bits, positive, negative);
}

void OneBitDecode(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                  In negative, std::size_t block, float weight, Out y) {
  CheckSigns(y.size(), block, bits.size(), positive.size());
  SLIMGRAD_CHECK(negative.size() == positive.size());
  SLIMGRAD_DISPATCH(backend, OneBitDecode, bits, positive, negative, block, weight, y);
}

void OneBitDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In positive,
                     In negative, std::size_t block, float weight, Out y) {
  CheckSigns(y.size(), block, bits.size(), positive.size());
  SLIMGRAD_CHECK(negative.size() == positive.size());
  SLIMGRAD_DISPATCH(backend, OneBitDecodeAdd, bits, positive, negative, block, weight, y);
}

void ScaledSignEncode(const Backend& backend, In x, std::size_t block, std::span<std::uint8_t> bits,
                      Out scale) {
  CheckSigns(x.size(), block, bits.size(), scale.size());
  SLIMGRAD_DISPATCH(backend, ScaledSignEncode, x, block, bits, scale);
}

void ScaledSignEncodeFeedback(const Backend& backend, In x, Out residual, std::size_t block,
                              std::span<std::uint8_t> bits, Out scale) {
  CheckSigns(x.size(), block, bits.size(), scale.size());
  SLIMGRAD_CHECK(residual.size() == x.size());
  SLIMGRAD_DISPATCH(backend, ScaledSignEncodeFeedback, x, residual, block, bits, scale);
}

void ScaledSignDecode(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                      std::size_t block, float weight, Out y) {
  CheckSigns(y.size(), block, bits.size(), scale.size());
  SLIMGRAD_DISPATCH(backend, ScaledSignDecode, bits, scale, block, weight, y);
}

void ScaledSignDecodeAdd(const Backend& backend, std::span<const std::uint8_t> bits, In scale,
                         std::size_t block, float weight, Out y) {
  CheckSigns(y.size(), block, bits.size(), scale.size());
  SLIMGRAD_DISPATCH(backend, ScaledSignDecodeAdd, bits, scale, block, weight, y);
}

// --- stamps

namespace {

void CheckPlaces(const Stamps& stamps, std::size_t size) {
  for (const Stamp& stamp : stamps.span())
    SLIMGRAD_CHECK(stamp.offset <= size && stamp.size <= size - stamp.offset);
}

}  // namespace

void WriteStamps(const Backend& backend, const Stamps& stamps, std::span<std::byte> frame) {
  CheckPlaces(stamps, frame.size());
  SLIMGRAD_DISPATCH(backend, WriteStamps, stamps, frame);
}

void CheckStamps(const Backend& backend, const Stamps& stamps, std::span<const std::byte> frame,
                 std::uint64_t* wrong) {
  CheckPlaces(stamps, frame.size());
  SLIMGRAD_DISPATCH(backend, CheckStamps, stamps, frame, wrong);
}

// --- sums

double SumSquares(const Backend& backend, In x) { SLIMGRAD_DISPATCH(backend, SumSquares, x); }

double Dot(const Backend& backend, In x, In y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  SLIMGRAD_DISPATCH(backend, Dot, x, y);
}

double SumSquaredDifferences(const Backend& backend, In x, In y) {
  SLIMGRAD_CHECK(x.size() == y.size());
  SLIMGRAD_DISPATCH(backend, SumSquaredDifferences, x, y);
}

}  // namespace slimgrad::kernels
