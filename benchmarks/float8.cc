// fp32 <-> the two 8-bit floats.
#include "kernels/float8.h"

#include "benchmarks/codec_cases.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

constexpr auto kSaturate = k::Overflow::kSaturate;

template <k::Float8 kFormat>
struct F8 {
  explicit F8(std::size_t size) : n(size) {}
  using Code = CodeOf<std::uint8_t>;
  Code NewCode() const { return Code(n); }

  static void Encode(const Backend& backend, In x, Code& code) {
    k::F32ToF8(backend, kFormat, x, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeRef(In x, Code& code) {
    k::ref::F32ToF8({}, kFormat, x, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) {
    k::F32ToF8Feedback(backend, kFormat, x, residual, code.part<0>(), kSaturate, nullptr);
  }
  static void EncodeFeedbackRef(In x, Out residual, Code& code) {
    k::ref::F32ToF8Feedback({}, kFormat, x, residual, code.part<0>(), kSaturate, nullptr);
  }
  static void Decode(const Backend& backend, const Code& code, Out y) {
    k::F8ToF32(backend, kFormat, code.part<0>(), y);
  }
  static void DecodeRef(const Code& code, Out y) {
    k::ref::F8ToF32({}, kFormat, code.part<0>(), y);
  }

  std::size_t n;
};

}  // namespace

void AddFloat8(Operations& operations) {
  using E4M3 = F8<k::Float8::kE4M3>;
  using E5M2 = F8<k::Float8::kE5M2>;
  operations.push_back(Make<EncodeCase<E4M3>>("f32_to_e4m3"));
  operations.push_back(Make<EncodeCase<E5M2>>("f32_to_e5m2"));
  operations.push_back(Make<FeedbackCase<E4M3>>("f32_to_e4m3_feedback"));
  operations.push_back(Make<FeedbackCase<E5M2>>("f32_to_e5m2_feedback"));
  operations.push_back(Make<DecodeCase<E4M3>>("e4m3_to_f32"));
  operations.push_back(Make<DecodeCase<E5M2>>("e5m2_to_f32"));
}

}  // namespace slimgrad::benchmarks
