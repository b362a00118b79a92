#include "core/payload.h"

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.h"

namespace slimgrad {
namespace {

// Bytes in aligned memory of exactly their size, so that a sanitizer sees one byte too many.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::span<const std::byte> bytes) : buffer_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(buffer_.data(), bytes.data(), bytes.size());
  }
  std::span<std::byte> span() const { return buffer_.span(); }
  void PutU64(std::size_t at, std::uint64_t value) const {
    std::memcpy(&buffer_.span()[at], &value, sizeof value);
  }

 private:
  Buffer<std::byte> buffer_;
};

// Index 16 + 16 (12 used), value 16 + 16 (6 used), bits 16 + 16 (16 used).
constexpr std::size_t kSampleBytes = 96;

AlignedBytes Sample() {
  const Buffer<std::byte> memory(kSampleBytes);
  Payload payload(memory.span());
  const auto index = payload.Add<std::uint32_t>(Tag::kIndex, 3);
  const auto value = payload.Add<half_bits>(Tag::kValue, 3);
  const auto bits = payload.Add<std::uint8_t>(Tag::kBits, 16);
  for (std::size_t i = 0; i < 3; ++i) {
    index[i] = static_cast<std::uint32_t>(10 + i);
    value[i] = half_bits(0x3c00 + i);
  }
  for (std::size_t i = 0; i < 16; ++i) bits[i] = static_cast<std::uint8_t>(0xf0 + i);
  EXPECT_EQ(payload.body().size(), kSampleBytes);
  return AlignedBytes(payload.body());
}

std::string ErrorOf(const AlignedBytes& bytes) {
  const auto view = PayloadView::Parse(bytes.span());
  EXPECT_FALSE(view.ok());
  EXPECT_EQ(view.status().code(), Code::kCorrupt);
  return view.status().message();
}

TEST(SectionBytes, CountHeaderAndPadding) {
  EXPECT_EQ(SectionBytes(0), 16U);
  EXPECT_EQ(SectionBytes(1), 32U);
  EXPECT_EQ(SectionBytes(16), 32U);
  EXPECT_EQ(SectionBytes(17), 48U);
  EXPECT_EQ(SectionBytesOf<float>(5), 48U);
}

TEST(Payload, IsWhatTheFormatSays) {
  const Buffer<std::byte> memory(64);
  std::memset(memory.data(), 0xee, 64);  // old contents must not show
  Payload payload(memory.span());
  payload.Add<std::uint32_t>(Tag::kIndex, 1)[0] = 0x01020304;
  payload.Add<std::int8_t>(Tag::kValue, 2)[1] = -1;
  memory.span()[48] = std::byte{9};
  constexpr std::array<unsigned char, 64> kExpected = {
      1, 7, 0, 0, 0, 0,    0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0,
      0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 2, 5, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
      0, 0, 0, 0, 9, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  ASSERT_EQ(payload.body().size(), kExpected.size());
  EXPECT_EQ(std::memcmp(payload.body().data(), kExpected.data(), kExpected.size()), 0);
}

TEST(Payload, ReadsBackWhatWasWritten) {
  const AlignedBytes bytes = Sample();
  const auto view = PayloadView::Parse(bytes.span());
  ASSERT_TRUE(view.ok()) << view.status().message();
  ASSERT_EQ(view->sections().size(), 3U);
  EXPECT_EQ((*view->Get<std::uint32_t>(Tag::kIndex, 3))[2], 12U);
  EXPECT_EQ((*view->Get<half_bits>(Tag::kValue))[1], half_bits(0x3c01));
  EXPECT_EQ((*view->Get<std::uint8_t>(Tag::kBits))[15], 0xff);
  EXPECT_EQ(view->Find(Tag::kScale), nullptr);
}

TEST(Payload, GetNamesExpectedAndFound) {
  const AlignedBytes bytes = Sample();
  const auto view = PayloadView::Parse(bytes.span());
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->Get<float>(Tag::kScale).status().message(),
            "payload: expected a section scale of F32, found none");
  EXPECT_EQ(view->Get<float>(Tag::kValue).status().message(),
            "payload: expected a section value of F32, found value of F16");
  EXPECT_EQ(view->Get<std::uint32_t>(Tag::kIndex, 4).status().message(),
            "section index of U32: expected 4 elements, found 3");
  EXPECT_EQ(view->Get<std::uint32_t>(Tag::kIndex, 4).status().code(), Code::kCorrupt);
}

TEST(Payload, TrimmingKeepsAPrefixAndClearsTheRest) {
  const Buffer<std::byte> memory(16 + 48 + 32);
  Payload payload(memory.span());
  const auto code = payload.Add<std::uint8_t>(Tag::kIndex, 40);
  for (std::uint8_t& byte : code) byte = 0xff;
  payload.TrimLast(5);
  EXPECT_EQ(payload.body().size(), 32U);
  EXPECT_EQ(payload.Add<float>(Tag::kValue, 1).size(), 1U);  // begins right behind
  const auto view = PayloadView::Parse(payload.body());      // which checks the padding
  ASSERT_TRUE(view.ok()) << view.status().message();
  const auto kept = view->Get<std::uint8_t>(Tag::kIndex);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(std::vector<std::uint8_t>(kept->begin(), kept->end()),
            std::vector<std::uint8_t>(5, 0xff));
}

TEST(Payload, OfNoSectionsAndOfEmptySections) {
  EXPECT_TRUE(PayloadView::Parse({}).ok());
  const Buffer<std::byte> memory(16);
  Payload payload(memory.span());
  EXPECT_TRUE(payload.body().empty());
  EXPECT_TRUE(payload.Add<float>(Tag::kValue, 0).empty());
  const auto view = PayloadView::Parse(payload.body());
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view->Get<float>(Tag::kValue, 0).ok());
}

TEST(Payload, SingleIsBareValues) {
  const std::array<float, 2> values = {1, 2};
  const auto view =
      PayloadView::Single({Tag::kValue, DType::kF32}, std::as_bytes(std::span(values)));
  EXPECT_EQ((*view.Get<float>(Tag::kValue, 2)).data(), values.data());
}

TEST(PayloadDeathTest, OwnMistakesStop) {
  const Buffer<std::byte> memory(64);
  EXPECT_DEATH(Payload(memory.span().subspan(8)), "check failed");  // not aligned
  Payload payload(memory.span());
  payload.Add<float>(Tag::kValue, 4);
  EXPECT_DEATH(payload.Add<float>(Tag::kValue, 0), "check failed");         // the tag again
  EXPECT_DEATH(payload.Add<float>(Tag::kScale, 5), "check failed");         // 16 + 32 > 32
  EXPECT_DEATH(payload.Add<float>(Tag::kScale, SIZE_MAX), "check failed");  // would wrap
  EXPECT_DEATH(payload.AddBytes({Tag::kScale, DType::kF32}, 6), "check failed");
  EXPECT_DEATH(payload.TrimLast(20), "check failed");                // longer
  EXPECT_DEATH(payload.TrimLast(6), "check failed");                 // half an element
  EXPECT_DEATH(Payload(memory.span()).TrimLast(0), "check failed");  // nothing to trim
  EXPECT_DEATH(static_cast<void>(payload.view().sections()[0].As<std::uint32_t>()), "check failed");
  EXPECT_EQ(payload.Add<float>(Tag::kScale, 4).size(), 4U);  // exactly full is fine
}

TEST(PayloadParse, NamesWhatIsWrong) {
  const AlignedBytes tag = Sample(), dtype = Sample(), zero = Sample(), whole = Sample(),
                     large = Sample(), padding = Sample(), twice = Sample();
  tag.span()[0] = std::byte{7};
  EXPECT_EQ(ErrorOf(tag), "section tag: expected 1 to 6, found 7");
  dtype.span()[1] = std::byte{12};
  EXPECT_EQ(ErrorOf(dtype), "section dtype: expected 1 to 11, found 12");
  zero.span()[7] = std::byte{1};
  EXPECT_EQ(ErrorOf(zero), "section header: expected zeros in bytes 2 to 7, found 1");
  whole.PutU64(8, 11);
  EXPECT_EQ(ErrorOf(whole), "section bytes: expected a multiple of 4, found 11");
  large.PutU64(8, 84);
  EXPECT_EQ(ErrorOf(large), "section bytes: expected at most 80, found 84");
  large.PutU64(8, ~std::uint64_t{0} - 3);
  EXPECT_EQ(ErrorOf(large), "section bytes: expected at most 80, found 18446744073709551612");
  padding.span()[31] = std::byte{1};
  EXPECT_EQ(ErrorOf(padding), "section padding: expected zeros, found another byte");
  twice.span()[32] = std::byte{1};
  EXPECT_EQ(ErrorOf(twice), "section tag: expected each once, found index twice");
  EXPECT_EQ(ErrorOf(AlignedBytes(Sample().span().first(40))),
            "section header: expected 16 bytes, found 8");
  EXPECT_EQ(ErrorOf(AlignedBytes(Sample().span().first(28))),
            "section padding: expected a multiple of 16 bytes, found fewer");
}

TEST(PayloadParse, RefusesMoreThanEightSections) {
  // There are six tags, so the ninth section repeats one; whichever rule is met first, it is
  // refused, and never stored.
  const Buffer<std::byte> memory(16 * 9);
  for (std::size_t s = 0; s < 9; ++s) {
    memory.span()[16 * s] = std::byte(1 + s % 6);
    memory.span()[16 * s + 1] = std::byte{4};
  }
  EXPECT_TRUE(PayloadView::Parse(memory.first(16 * 6)).ok());
  for (std::size_t s = 7; s <= 9; ++s) EXPECT_FALSE(PayloadView::Parse(memory.first(16 * s)).ok());
}

// Reads whatever a view offers, so that a sanitizer sees a section that lies outside.
unsigned Touch(const PayloadView& view) {
  unsigned sum = 0;
  for (const Section& section : view.sections()) {
    EXPECT_EQ(section.bytes.size(), section.count() * SizeOf(section.type.dtype));
    for (const std::byte byte : section.bytes) sum += static_cast<unsigned>(byte);
  }
  return sum;
}

// A payload that is accepted says its bytes and nothing else: written again it is the same.
void ExpectCanonical(const PayloadView& view, std::span<const std::byte> bytes) {
  const Buffer<std::byte> memory(bytes.size());
  Payload again(memory.span());
  for (const Section& section : view.sections()) {
    const auto to = again.AddBytes(section.type, section.bytes.size());
    if (!to.empty()) std::memcpy(to.data(), section.bytes.data(), to.size());
  }
  ASSERT_EQ(again.body().size(), bytes.size());
  if (!bytes.empty()) {
    EXPECT_EQ(std::memcmp(again.body().data(), bytes.data(), bytes.size()), 0);
  }
}

TEST(PayloadParse, EveryTruncationIsRefusedOrIsAWholeNumberOfSections) {
  const AlignedBytes whole = Sample();
  for (std::size_t size = 0; size < kSampleBytes; ++size) {
    const AlignedBytes cut(whole.span().first(size));
    EXPECT_EQ(PayloadView::Parse(cut.span()).ok(), size % 32 == 0) << size;
  }
}

TEST(PayloadParse, EveryChangedByteIsRefusedOrSaysSomethingElse) {
  for (std::size_t at = 0; at < kSampleBytes; ++at)
    for (int value = 0; value < 256; ++value) {
      const AlignedBytes bytes = Sample();
      if (bytes.span()[at] == std::byte(value)) continue;
      bytes.span()[at] = std::byte(value);
      const auto view = PayloadView::Parse(bytes.span());
      if (!view.ok()) continue;
      Touch(*view);
      ExpectCanonical(*view, bytes.span());
    }
}

TEST(PayloadParse, RandomBytesAreRefusedOrReadInBounds) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const Buffer<std::byte> memory(16 * (random() % 6) + (random() % 8 == 0 ? random() % 16 : 0));
    // Plausible headers: random bytes alone would never pass the first check.
    for (std::size_t at = 0; at + 16 <= memory.size(); at += 16) {
      if (random() % 4 == 0) continue;
      memory.span()[at] = std::byte(random() % 8);
      memory.span()[at + 1] = std::byte(random() % 13);
      memory.span()[at + 8] = std::byte(random() % 3 == 0 ? random() % 80 : 0);
      if (random() % 16 == 0) memory.span()[at + random() % 16] = std::byte(random());
    }
    const auto view = PayloadView::Parse(memory.span());
    if (!view.ok()) {
      EXPECT_EQ(view.status().code(), Code::kCorrupt);
      continue;
    }
    ++accepted;
    Touch(*view);
    ExpectCanonical(*view, memory.span());
  }
  EXPECT_GT(accepted, 100);
}

TEST(Tag, EveryNumberHasAName) {
  EXPECT_EQ(NameOf(Tag::kIndex), "index");
  EXPECT_EQ(NameOf(Tag::kNegative), "negative");
  EXPECT_EQ(NameOf(Tag{0}), "?");
  EXPECT_EQ(NameOf(Tag{7}), "?");
}

}  // namespace
}  // namespace slimgrad
