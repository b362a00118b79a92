// 8-bit and 4-bit integers, and QSGD.
#include "kernels/quantize.h"

#include "benchmarks/codec_cases.h"
#include "kernels/qsgd.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

constexpr RandomKey kKey = {0x79072513F362CB49, 2};

struct Int8 {
  Int8(std::size_t size, std::size_t block_size, k::Rounding how)
      : n(size), block(block_size), rounding(how) {}
  using Code = CodeOf<std::int8_t, float>;
  Code NewCode() const { return Code(n, k::BlockCount(n, block)); }

  void Encode(const Backend& backend, In x, Code& code) const {
    k::Int8Encode(backend, x, block, rounding, kKey, code.part<0>(), code.part<1>());
  }
  void EncodeRef(In x, Code& code) const {
    k::ref::Int8Encode({}, x, block, rounding, kKey, code.part<0>(), code.part<1>());
  }
  void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) const {
    k::Int8EncodeFeedback(backend, x, residual, block, rounding, kKey, code.part<0>(),
                          code.part<1>());
  }
  void EncodeFeedbackRef(In x, Out residual, Code& code) const {
    k::ref::Int8EncodeFeedback({}, x, residual, block, rounding, kKey, code.part<0>(),
                               code.part<1>());
  }
  void Decode(const Backend& backend, const Code& code, Out y) const {
    k::Int8Decode(backend, code.part<0>(), code.part<1>(), block, 1.0F, y);
  }
  void DecodeRef(const Code& code, Out y) const {
    k::ref::Int8Decode({}, code.part<0>(), code.part<1>(), block, 1.0F, y);
  }

  std::size_t n, block;
  k::Rounding rounding;
};

struct Int4 {
  Int4(std::size_t size, std::size_t block_size) : n(size), block(block_size) {}
  using Code = CodeOf<std::uint8_t, float>;
  Code NewCode() const { return Code(k::Int4Bytes(n), k::BlockCount(n, block)); }

  void Encode(const Backend& backend, In x, Code& code) const {
    k::Int4Encode(backend, x, block, kNearest, kKey, code.part<0>(), code.part<1>());
  }
  void EncodeRef(In x, Code& code) const {
    k::ref::Int4Encode({}, x, block, kNearest, kKey, code.part<0>(), code.part<1>());
  }
  void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) const {
    k::Int4EncodeFeedback(backend, x, residual, block, kNearest, kKey, code.part<0>(),
                          code.part<1>());
  }
  void EncodeFeedbackRef(In x, Out residual, Code& code) const {
    k::ref::Int4EncodeFeedback({}, x, residual, block, kNearest, kKey, code.part<0>(),
                               code.part<1>());
  }
  void Decode(const Backend& backend, const Code& code, Out y) const {
    k::Int4Decode(backend, code.part<0>(), code.part<1>(), block, 1.0F, y);
  }
  void DecodeRef(const Code& code, Out y) const {
    k::ref::Int4Decode({}, code.part<0>(), code.part<1>(), block, 1.0F, y);
  }

  static constexpr auto kNearest = k::Rounding::kNearest;
  std::size_t n, block;
};

struct Qsgd {
  Qsgd(std::size_t size, std::size_t bucket_size, int level_count)
      : n(size), bucket(bucket_size), levels(level_count) {}
  using Code = CodeOf<std::int8_t, float>;
  Code NewCode() const { return Code(n, k::BlockCount(n, bucket)); }

  void Encode(const Backend& backend, In x, Code& code) const {
    k::QsgdEncode(backend, x, bucket, levels, kKey, code.part<0>(), code.part<1>());
  }
  void EncodeRef(In x, Code& code) const {
    k::ref::QsgdEncode({}, x, bucket, levels, kKey, code.part<0>(), code.part<1>());
  }
  void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) const {
    k::QsgdEncodeFeedback(backend, x, residual, bucket, levels, kKey, code.part<0>(),
                          code.part<1>());
  }
  void EncodeFeedbackRef(In x, Out residual, Code& code) const {
    k::ref::QsgdEncodeFeedback({}, x, residual, bucket, levels, kKey, code.part<0>(),
                               code.part<1>());
  }
  void Decode(const Backend& backend, const Code& code, Out y) const {
    k::QsgdDecode(backend, code.part<0>(), code.part<1>(), bucket, levels, 1.0F, y);
  }
  void DecodeRef(const Code& code, Out y) const {
    k::ref::QsgdDecode({}, code.part<0>(), code.part<1>(), bucket, levels, 1.0F, y);
  }

  std::size_t n, bucket;
  int levels;
};

}  // namespace

void AddQuantize(Operations& operations) {
  constexpr std::size_t kWide = 256;  // elements that share a scale
  constexpr std::size_t kNarrow = 128;
  constexpr int kLevels = 127;
  constexpr auto kNearest = k::Rounding::kNearest;
  constexpr auto kStochastic = k::Rounding::kStochastic;
  operations.push_back(Make<EncodeCase<Int8>>("int8", kWide, kNearest));
  operations.push_back(Make<EncodeCase<Int8>>("int8_stochastic", kWide, kStochastic));
  operations.push_back(Make<FeedbackCase<Int8>>("int8_feedback", kNarrow, kNearest));
  operations.push_back(Make<DecodeCase<Int8>>("int8_decode", kWide, kNearest));
  operations.push_back(Make<EncodeCase<Int4>>("int4", kNarrow));
  operations.push_back(Make<FeedbackCase<Int4>>("int4_feedback", kNarrow));
  operations.push_back(Make<DecodeCase<Int4>>("int4_decode", kNarrow));
  operations.push_back(Make<EncodeCase<Qsgd>>("qsgd", kNarrow, kLevels));
  operations.push_back(Make<FeedbackCase<Qsgd>>("qsgd_feedback", kNarrow, kLevels));
  operations.push_back(Make<DecodeCase<Qsgd>>("qsgd_decode", kNarrow, kLevels));
}

}  // namespace slimgrad::benchmarks
