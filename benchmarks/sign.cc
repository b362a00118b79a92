// One bit an element.
#include "kernels/sign.h"

#include "benchmarks/codec_cases.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

// Signs without a level: what is decoded is 1 and -1.
struct Sign {
  explicit Sign(std::size_t size) : n(size) {}
  static constexpr bool kNotDecoded = true;
  using Code = CodeOf<std::uint8_t>;
  Code NewCode() const { return Code(k::BitBytes(n)); }

  static void Encode(const Backend& backend, In x, Code& code) {
    k::SignPack(backend, x, code.part<0>());
  }
  static void EncodeRef(In x, Code& code) { k::ref::SignPack({}, x, code.part<0>()); }
  static void Decode(const Backend& backend, const Code& code, Out y) {
    k::SignUnpack(backend, code.part<0>(), y);
  }
  static void DecodeRef(const Code& code, Out y) { k::ref::SignUnpack({}, code.part<0>(), y); }

  std::size_t n;
};

// Bits and two levels for each 4096.
struct OneBit {
  explicit OneBit(std::size_t size) : n(size) {}
  using Code = CodeOf<std::uint8_t, float, float>;
  Code NewCode() const {
    return Code(k::BitBytes(n), k::BlockCount(n, kBlock), k::BlockCount(n, kBlock));
  }

  static void Encode(const Backend& backend, In x, Code& code) {
    k::OneBitEncode(backend, x, kBlock, code.part<0>(), code.part<1>(), code.part<2>());
  }
  static void EncodeRef(In x, Code& code) {
    ForBlocks(x.size(), [&](std::size_t at, std::size_t count) {
      const Part part(code, at, count);
      k::ref::OneBitEncode({}, x.subspan(at, count), kBlock, part.bits, part.positive,
                           part.negative);
    });
  }
  static void EncodeFeedback(const Backend& backend, In x, Out residual, Code& code) {
    k::OneBitEncodeFeedback(backend, x, residual, kBlock, code.part<0>(), code.part<1>(),
                            code.part<2>());
  }
  static void EncodeFeedbackRef(In x, Out residual, Code& code) {
    ForBlocks(x.size(), [&](std::size_t at, std::size_t count) {
      const Part part(code, at, count);
      k::ref::OneBitEncodeFeedback({}, x.subspan(at, count), residual.subspan(at, count), kBlock,
                                   part.bits, part.positive, part.negative);
    });
  }
  static void Decode(const Backend& backend, const Code& code, Out y) {
    k::OneBitDecode(backend, code.part<0>(), code.part<1>(), code.part<2>(), kBlock, 1.0F, y);
  }
  static void DecodeRef(const Code& code, Out y) {
    k::ref::OneBitDecode({}, code.part<0>(), code.part<1>(), code.part<2>(), kBlock, 1.0F, y);
  }

  std::size_t n;

 private:
  static constexpr std::size_t kBlock = 4096;

  // Blocks do not depend on each other, and ref's time grows with the square of their number: it
  // gets two at a time.
  template <class RunBlocks>
  static void ForBlocks(std::size_t n, const RunBlocks& run) {
    for (std::size_t at = 0; at < n; at += 2 * kBlock) run(at, std::min(2 * kBlock, n - at));
  }

  struct Part {
    Part(Code& code, std::size_t at, std::size_t count)
        : bits(code.part<0>().subspan(at / 8, k::BitBytes(count))),
          positive(code.part<1>().subspan(at / kBlock, k::BlockCount(count, kBlock))),
          negative(code.part<2>().subspan(at / kBlock, k::BlockCount(count, kBlock))) {}
    std::span<std::uint8_t> bits;
    Out positive, negative;
  };
};

}  // namespace

void AddSign(Operations& operations) {
  operations.push_back(Make<EncodeCase<Sign>>("sign_pack"));
  operations.push_back(Make<DecodeCase<Sign>>("sign_unpack"));
  operations.push_back(Make<EncodeCase<OneBit>>("one_bit"));
  operations.push_back(Make<FeedbackCase<OneBit>>("one_bit_feedback"));
  operations.push_back(Make<DecodeCase<OneBit>>("one_bit_decode"));
  operations.push_back(Make<RoundTripCase<OneBit>>("one_bit_round_trip"));
}

}  // namespace slimgrad::benchmarks
