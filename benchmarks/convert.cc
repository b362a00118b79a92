// fp32 <-> fp16 and bf16.
#include "kernels/convert.h"

#include "benchmarks/codec_cases.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

constexpr auto kSaturate = k::Overflow::kSaturate;

struct F16 {
  explicit F16(std::size_t size) : n(size) {}
  using Code = CodeOf<half_bits>;
  Code NewCode() const { return Code(n); }

  static void Encode(const Backend& backend, In x, Code& code) {
    k::F32ToF16(backend, x, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeRef(In x, Code& code) {
    k::ref::F32ToF16({}, x, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) {
    k::F32ToF16Feedback(backend, x, residual, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeFeedbackRef(In x, Out residual, Code& code) {
    k::ref::F32ToF16Feedback({}, x, residual, code.part<0>(), kSaturate, nullptr);
  }
  static void Decode(const Backend& backend, const Code& code, Out y) {
    k::F16ToF32(backend, code.part<0>(), y);
  }
  static void DecodeRef(const Code& code, Out y) { k::ref::F16ToF32({}, code.part<0>(), y); }

  std::size_t n;
};

struct BF16 {
  explicit BF16(std::size_t size) : n(size) {}
  using Code = CodeOf<bfloat16_bits>;
  Code NewCode() const { return Code(n); }

  static void Encode(const Backend& backend, In x, Code& code) {
    k::F32ToBF16(backend, x, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeRef(In x, Code& code) {
    k::ref::F32ToBF16({}, x, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) {
    k::F32ToBF16Feedback(backend, x, residual, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeFeedbackRef(In x, Out residual, Code& code) {
    k::ref::F32ToBF16Feedback({}, x, residual, code.part<0>(), kSaturate, nullptr);
  }
  static void Decode(const Backend& backend, const Code& code, Out y) {
    k::BF16ToF32(backend, code.part<0>(), y);
  }
  static void DecodeRef(const Code& code, Out y) { k::ref::BF16ToF32({}, code.part<0>(), y); }

  std::size_t n;
};

}  // namespace

void AddConvert(Operations& operations) {
  operations.push_back(Make<EncodeCase<F16>>("f32_to_f16"));
  operations.push_back(Make<EncodeCase<BF16>>("f32_to_bf16"));
  operations.push_back(Make<FeedbackCase<F16>>("f32_to_f16_feedback"));
  operations.push_back(Make<FeedbackCase<BF16>>("f32_to_bf16_feedback"));
  operations.push_back(Make<DecodeCase<F16>>("f16_to_f32"));
  operations.push_back(Make<DecodeCase<BF16>>("bf16_to_f32"));
  operations.push_back(Make<RoundTripCase<F16>>("f16_round_trip"));
}

}  // namespace slimgrad::benchmarks
