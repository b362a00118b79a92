// The kernels of quantize.h against the reference, both forms of codes by the same cases.
#include "kernels/elementwise.h"
#include "kernels/quantize.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;
const RandomKey kKey = {0x123456789ABCDEF0, 17};

// Codes of a byte that are streamed past the caches.
std::size_t StreamedBytes() { return (std::size_t{1} << (OnCuda() ? 18 : 22)) + 1001; }

// Both forms of codes, as bytes.
using Bytes = std::vector<std::uint8_t>;

struct Form {
  std::size_t Size(std::size_t n) const { return four ? Int4Bytes(n) : n; }

  bool four = false;
};

struct Code {
  Bytes bytes;
  std::vector<float> absmax;

  bool operator==(const Code&) const = default;
};

std::span<std::int8_t> Signed(std::span<std::uint8_t> bytes) {
  return {reinterpret_cast<std::int8_t*>(bytes.data()), bytes.size()};
}

std::span<const std::int8_t> Signed(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const std::int8_t*>(bytes.data()), bytes.size()};
}

// `offset` moves the start of the codes.
Code Encode(Form form, In x, std::size_t block, Rounding rounding,
            const Backend& backend = kBackend, std::size_t offset = 0) {
  Bytes memory(offset + form.Size(x.size()), 0xEE);
  const auto bytes = std::span(memory).subspan(offset);
  Code code = {{}, std::vector<float>(BlockCount(x.size(), block), -7.0F)};
  if (form.four) {
    subject::Int4Encode(backend, x, block, rounding, kKey, bytes, code.absmax);
  } else {
    subject::Int8Encode(backend, x, block, rounding, kKey, Signed(bytes), code.absmax);
  }
  code.bytes.assign(bytes.begin(), bytes.end());
  return code;
}

Code RefEncode(Form form, In x, std::size_t block, Rounding rounding) {
  Code code = {Bytes(form.Size(x.size()), 0xEE),
               std::vector<float>(BlockCount(x.size(), block), -7.0F)};
  if (form.four) {
    ref::Int4Encode(kBackend, x, block, rounding, kKey, code.bytes, code.absmax);
  } else {
    ref::Int8Encode(kBackend, x, block, rounding, kKey, Signed(std::span(code.bytes)), code.absmax);
  }
  return code;
}

// All of Decode, DecodeAdd, in both implementations, to results that begin at `offset`.
void ExpectDecodesAgree(Form form, const Code& code, std::size_t n, std::size_t block,
                        const Backend& backend, std::size_t offset) {
  const std::vector<float> before = MakeInput(Pattern::kNormal, offset + n, 3);
  std::vector<float> y = before, expected = before, added = before, added_expected = before;
  const std::span<const std::uint8_t> bytes = code.bytes;
  const auto at = [&](std::vector<float>& memory) { return Out(memory).subspan(offset); };
  if (form.four) {
    subject::Int4Decode(backend, bytes, code.absmax, block, 0.3F, at(y));
    ref::Int4Decode(kBackend, bytes, code.absmax, block, 0.3F, at(expected));
    subject::Int4DecodeAdd(backend, bytes, code.absmax, block, 0.3F, at(added));
    ref::Int4DecodeAdd(kBackend, bytes, code.absmax, block, 0.3F, at(added_expected));
  } else {
    subject::Int8Decode(backend, Signed(bytes), code.absmax, block, 0.3F, at(y));
    ref::Int8Decode(kBackend, Signed(bytes), code.absmax, block, 0.3F, at(expected));
    subject::Int8DecodeAdd(backend, Signed(bytes), code.absmax, block, 0.3F, at(added));
    ref::Int8DecodeAdd(kBackend, Signed(bytes), code.absmax, block, 0.3F, at(added_expected));
  }
  EXPECT_TRUE(SameBitsOrNans(y, expected));
  EXPECT_TRUE(SameBitsOrNans(added, added_expected));
}

struct Fed {
  Code code;
  std::vector<float> residual;
};

Fed EncodeFeedback(Form form, In x, std::size_t block, Rounding rounding, const Backend& backend) {
  // A residual of the same kind, so that sums overflow where the values are huge.
  Fed fed = {
      {Bytes(form.Size(x.size()), 0xEE), std::vector<float>(BlockCount(x.size(), block), -7.0F)},
      std::vector<float>(x.rbegin(), x.rend())};
  if (form.four) {
    subject::Int4EncodeFeedback(backend, x, fed.residual, block, rounding, kKey, fed.code.bytes,
                                fed.code.absmax);
  } else {
    subject::Int8EncodeFeedback(backend, x, fed.residual, block, rounding, kKey,
                                Signed(std::span(fed.code.bytes)), fed.code.absmax);
  }
  return fed;
}

// The same in three passes of the reference.
Fed ThreePasses(Form form, In x, std::size_t block, Rounding rounding) {
  Fed fed = {{}, std::vector<float>(x.rbegin(), x.rend())};
  ref::AddSaturated(kBackend, x, fed.residual);
  fed.code = RefEncode(form, fed.residual, block, rounding);
  const std::span<const std::uint8_t> bytes = fed.code.bytes;
  if (form.four) {
    ref::Int4DecodeAdd(kBackend, bytes, fed.code.absmax, block, -1.0F, fed.residual);
  } else {
    ref::Int8DecodeAdd(kBackend, Signed(bytes), fed.code.absmax, block, -1.0F, fed.residual);
  }
  return fed;
}

void ExpectRefAgrees(Form form, In x, std::size_t block, const Backend& backend = kBackend,
                     std::size_t offset = 0) {
  for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
    const Code code = Encode(form, x, block, rounding, backend, offset);
    const Code expected = RefEncode(form, x, block, rounding);
    EXPECT_TRUE(SameBits(code.bytes, expected.bytes));
    EXPECT_TRUE(SameBits(code.absmax, expected.absmax));
    ExpectDecodesAgree(form, code, x.size(), block, backend, offset);
    const Fed fed = EncodeFeedback(form, x, block, rounding, backend);
    const Fed fed_expected = ThreePasses(form, x, block, rounding);
    EXPECT_TRUE(SameBits(fed.code.bytes, fed_expected.code.bytes));
    EXPECT_TRUE(SameBits(fed.code.absmax, fed_expected.code.absmax));
    EXPECT_TRUE(SameBits(fed.residual, fed_expected.residual));
  }
}

TEST(Int8Test, EveryInputAsTheReferenceDoes) {
  for (std::size_t block : {1, 100, 256, 1 << 20})
    ForEveryInput([=](In x) {
      if (!OnCuda() || x.size() / block <= 300) ExpectRefAgrees({.four = false}, x, block);
    });
}

TEST(Int4Test, EveryInputAsTheReferenceDoes) {
  for (std::size_t block : {2, 100, 128})
    ForEveryInput([=](In x) {
      if (!OnCuda() || x.size() / block <= 300) ExpectRefAgrees({.four = true}, x, block);
    });
}

TEST(QuantizeTest, ThreadsChangeNothing) {
  FourThreads threads;
  const std::vector<float> x = MakeInput(Pattern::kNormal, kManyTasks);
  for (bool four : {false, true})
    for (std::size_t block : {1000UL, kManyTasks + 1})
      ExpectRefAgrees({four}, x, block, threads.backend());
}

// Lengths of blocks around what a few threads, a warp and more share on a GPU, of whole groups and
// of others; one block, and several with a last one that is shorter.
TEST(QuantizeTest, BlocksOfAnyLengthAsTheReferenceDoes) {
  for (std::size_t block : {8,    10,   32,   64,   96,   250,  264,  512,  1000, 1024,
                            1032, 2048, 4088, 4096, 4104, 8184, 8192, 8194, 8200, 20000}) {
    SCOPED_TRACE(block);
    const std::size_t offset = block % 3;
    for (std::size_t n : {block, 2 * block + 1, 3 * block + block / 2 + 4}) {
      const std::vector<float> x = MakeInput(Pattern::kExponents, n + offset);
      for (bool four : {false, true}) ExpectRefAgrees({four}, In(x).subspan(offset), block);
    }
  }
}

TEST(QuantizeTest, OnlyIfDecidesWhetherAnythingIsDone) {
  const std::uint64_t never = 0, always = 7;
  for (std::size_t block : {64, 1000, 10000}) {
    const std::vector<float> x = MakeInput(Pattern::kNormal, 12000);
    Backend backend;
    backend.only_if = &never;
    const Fed none = EncodeFeedback({}, x, block, Rounding::kStochastic, backend);
    EXPECT_TRUE(SameBits(none.code.bytes, Bytes(x.size(), 0xEE)));
    EXPECT_TRUE(SameBits(none.code.absmax, std::vector<float>(none.code.absmax.size(), -7.0F)));
    EXPECT_TRUE(SameBits(none.residual, {x.rbegin(), x.rend()}));
    std::vector<float> y = x;
    const std::vector<float> absmax(none.code.absmax.size(), 1.0F);
    subject::Int8DecodeAdd(backend, Signed(std::span<const std::uint8_t>(none.code.bytes)), absmax,
                           block, 1.0F, y);
    EXPECT_TRUE(SameBits(y, x));
    backend.only_if = &always;
    const Fed fed = EncodeFeedback({}, x, block, Rounding::kStochastic, backend);
    EXPECT_TRUE(fed.code == ThreePasses({}, x, block, Rounding::kStochastic).code);
  }
}

// Codes and results that begin with a cache line, within one, and within 16 bytes of one.
TEST(QuantizeTest, StreamedOutputsAreTheSame) {
  const std::vector<float> x = MakeInput(Pattern::kExponents, StreamedBytes());
  const Code code = RefEncode({.four = false}, x, 256, Rounding::kNearest);
  for (std::size_t offset : {0, 16, 3}) {
    const Code streamed = Encode({.four = false}, x, 256, Rounding::kNearest, kBackend, offset);
    EXPECT_TRUE(SameBits(streamed.bytes, code.bytes));
    ExpectDecodesAgree({.four = false}, code, x.size(), 256, kBackend, offset);
  }
  const std::vector<float> y = MakeInput(Pattern::kExponents, 2 * StreamedBytes());
  const Code nibbles = RefEncode({.four = true}, y, 128, Rounding::kNearest);
  for (std::size_t offset : {0, 16, 3})
    EXPECT_TRUE(SameBits(Encode({.four = true}, y, 128, Rounding::kNearest, kBackend, offset).bytes,
                         nibbles.bytes));
  const Code drawn = RefEncode({.four = true}, y, 96, Rounding::kStochastic);
  EXPECT_TRUE(SameBits(Encode({.four = true}, y, 96, Rounding::kStochastic).bytes, drawn.bytes));
}

// Every byte, with a scale whose L units exceed it, or that is hostile.
TEST(QuantizeTest, EveryCodeDecodesAsTheReferenceDoes) {
  Code code;
  for (int byte = 0; byte < 256; ++byte) code.bytes.push_back(static_cast<std::uint8_t>(byte));
  for (float scale : {1.0F, 0.1F, kMaxFloat, 1e-44F, 0x1p-97F, 0.0F, -3.0F, -kMaxFloat}) {
    for (bool four : {false, true}) {
      const std::size_t n = four ? 512 : 256;
      code.absmax = std::vector<float>(n / 64, scale);
      ExpectDecodesAgree({four}, code, n, 64, kBackend, 0);
    }
  }
}

}  // namespace
}  // namespace slimgrad::kernels
