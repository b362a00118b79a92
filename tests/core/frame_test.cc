#include "core/frame.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.h"
#include "core/hash.h"

namespace slimgrad {
namespace {

constexpr FrameInfo kInfo = {0x1122334455667788, 3, 9, 2};

// A frame in memory of exactly its size, so that a sanitizer sees one byte too many.
Buffer<std::byte> Sample(const FrameInfo& info = kInfo) {
  Buffer<std::byte> memory(kFrameHeaderBytes + SectionBytes(6) + SectionBytes(4));
  Payload payload(FrameBody(memory.span()));
  for (half_bits& value : payload.Add<half_bits>(Tag::kValue, 3)) value = half_bits{0x3c00};
  payload.Add<float>(Tag::kScale, 1)[0] = 2;
  EXPECT_EQ(SealFrame(memory.span(), payload, info).size(), memory.size());
  return memory;
}

template <class T>
T At(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

// Makes a changed frame pass the checksum: what a hostile sender does.
void Reseal(std::span<std::byte> frame) {
  const std::uint64_t parts[2] = {Hash64(frame.first(40)), Hash64(frame.subspan(48))};
  const std::uint64_t sum = Hash64(std::as_bytes(std::span(parts)));
  std::memcpy(&frame[40], &sum, sizeof sum);
}

std::string ErrorOf(std::span<const std::byte> bytes) {
  const auto frame = ReadFrame(bytes);
  EXPECT_FALSE(frame.ok());
  EXPECT_EQ(frame.status().code(), Code::kCorrupt);
  return frame.status().message();
}

TEST(Frame, HeaderIsWhatTheFormatSays) {
  const Buffer<std::byte> memory = Sample();
  const std::span<std::byte> bytes = memory.span();
  EXPECT_EQ(std::memcmp(bytes.data(), "SGRF", 4), 0);
  EXPECT_EQ(At<std::uint16_t>(bytes, 4), 1);  // version
  EXPECT_EQ(At<std::uint8_t>(bytes, 6), 2);   // round
  EXPECT_EQ(At<std::uint8_t>(bytes, 7), 2);   // sections
  EXPECT_EQ(At<std::uint64_t>(bytes, 8), kInfo.spec_hash);
  EXPECT_EQ(At<std::uint64_t>(bytes, 16), 3U);  // elements
  EXPECT_EQ(At<std::uint64_t>(bytes, 24), 9U);  // step
  EXPECT_EQ(At<std::uint64_t>(bytes, 32), bytes.size() - 48);
  const auto sum = At<std::uint64_t>(bytes, 40);
  Reseal(bytes);
  EXPECT_EQ(At<std::uint64_t>(bytes, 40), sum);
}

TEST(Frame, OpensToWhatWasSealed) {
  const Buffer<std::byte> memory = Sample();
  const auto frame = ReadFrame(memory.span());
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  EXPECT_EQ(frame->info, kInfo);
  EXPECT_EQ(frame->bytes, memory.size());
  const auto payload = OpenFrame(memory.span(), kInfo);
  ASSERT_TRUE(payload.ok()) << payload.status().message();
  EXPECT_EQ((*payload->Get<half_bits>(Tag::kValue, 3))[2], half_bits{0x3c00});
  EXPECT_EQ((*payload->Get<float>(Tag::kScale, 1))[0], 2);
}

TEST(Frame, EveryChangedBitIsRefused) {
  const std::size_t size = Sample().size();
  for (std::size_t at = 0; at < size; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      const Buffer<std::byte> memory = Sample();
      memory.span()[at] ^= std::byte(1 << bit);
      EXPECT_FALSE(ReadFrame(memory.span()).ok()) << at << '.' << bit;
    }
}

TEST(Frame, EveryByteReplacedIsRefused) {
  const std::size_t size = Sample().size();
  for (std::size_t at = 0; at < size; ++at)
    for (const int change : {0x55, 0xaa, 0xff}) {
      const Buffer<std::byte> memory = Sample();
      memory.span()[at] ^= std::byte(change);
      EXPECT_FALSE(ReadFrame(memory.span()).ok()) << at;
    }
}

TEST(Frame, EveryTruncationIsRefused) {
  const Buffer<std::byte> whole = Sample();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Buffer<std::byte> cut(size);
    if (size > 0) std::memcpy(cut.data(), whole.data(), size);
    EXPECT_FALSE(ReadFrame(cut.span()).ok()) << size;
    EXPECT_FALSE(OpenFrame(cut.span(), kInfo).ok()) << size;
  }
}

TEST(Frame, AHostileHeaderWithAGoodChecksumIsReadInBounds) {
  const std::size_t size = Sample().size();
  for (std::size_t at = 0; at < size; ++at)
    for (int change = 1; change < 256; ++change) {
      if (at >= 40 && at < 48) continue;
      const Buffer<std::byte> memory = Sample();
      memory.span()[at] ^= std::byte(change);
      Reseal(memory.span());
      const auto frame = ReadFrame(memory.span());
      if (!frame.ok()) continue;
      EXPECT_EQ(frame->bytes, size);
      EXPECT_EQ(frame->payload.sections().size(), 2U);
      for (const Section& section : frame->payload.sections())
        EXPECT_LE(section.bytes.data() + section.bytes.size(), memory.data() + memory.size());
    }
}

TEST(Frame, NamesWhatIsDamaged) {
  const auto changed = [](std::size_t at, std::uint64_t value, std::size_t bytes, bool reseal) {
    Buffer<std::byte> memory = Sample();
    std::memcpy(&memory.span()[at], &value, bytes);
    if (reseal) Reseal(memory.span());
    return memory;
  };
  EXPECT_EQ(ErrorOf(Sample().first(20)), "frame bytes: expected 48, found 20");
  EXPECT_EQ(ErrorOf(changed(0, 0, 4, true).span()), "frame magic: expected 1179797331, found 0");
  EXPECT_EQ(ErrorOf(changed(4, 2, 2, true).span()), "frame version: expected 1, found 2");
  EXPECT_EQ(ErrorOf(changed(7, 3, 1, true).span()), "frame sections: expected 3, found 2");
  EXPECT_EQ(ErrorOf(changed(32, 80, 8, true).span()),
            "frame body bytes: expected at most 64, found 80");
  EXPECT_EQ(ErrorOf(changed(32, 56, 8, true).span()),
            "frame body bytes: expected a multiple of 16, found 56");
  EXPECT_EQ(ErrorOf(changed(48, 7, 1, true).span()),
            "frame: section tag: expected 1 to 6, found 7");
  EXPECT_NE(ErrorOf(changed(24, 10, 8, false).span()).find("frame checksum: expected "),
            std::string::npos);
}

TEST(Frame, NamesTheFieldThatIsNotTheExpectedOne) {
  const Buffer<std::byte> memory = Sample();
  const auto error = [&](FrameInfo expected) {
    const auto payload = OpenFrame(memory.span(), expected);
    EXPECT_EQ(payload.status().code(), Code::kMismatch);
    return payload.status().message();
  };
  FrameInfo other = kInfo;
  other.spec_hash = 5;
  EXPECT_EQ(error(other), "frame spec hash: expected 5, found 1234605616436508552");
  other = kInfo;
  other.numel = 4;
  EXPECT_EQ(error(other), "frame element count: expected 4, found 3");
  other = kInfo;
  other.step = 8;
  EXPECT_EQ(error(other), "frame step: expected 8, found 9");
  other = kInfo;
  other.round = 0;
  EXPECT_EQ(error(other), "frame round: expected 0, found 2");
}

TEST(Frame, ABucketIsReadFrameByFrame) {
  std::vector<std::size_t> begins;
  const Buffer<std::byte> bucket(4096);
  std::size_t used = 0;
  for (std::size_t t = 0; t < 5; ++t) {
    begins.push_back(used);
    const std::span<std::byte> rest = bucket.span().subspan(used);
    Payload payload(FrameBody(rest));
    payload.Add<std::uint8_t>(Tag::kBits, 11 * t);
    used += SealFrame(rest, payload, {1, 88 * t, 7, 0}).size();
  }
  std::span<const std::byte> rest = bucket.first(used);
  for (std::size_t t = 0; t < 5; ++t) {
    const auto frame = ReadFrame(rest);
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    EXPECT_EQ(rest.data(), bucket.data() + begins[t]);
    EXPECT_EQ(frame->info.numel, 88 * t);
    EXPECT_TRUE(frame->payload.Get<std::uint8_t>(Tag::kBits, 11 * t).ok());
    if (t < 4) {
      EXPECT_EQ(OpenFrame(rest, frame->info).status().code(), Code::kCorrupt);
    }
    rest = rest.subspan(frame->bytes);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(FrameDeathTest, OwnMistakesStop) {
  const Buffer<std::byte> memory(64), elsewhere(64);
  EXPECT_DEATH(static_cast<void>(FrameBody(memory.first(47))), "check failed");
  Payload payload(elsewhere.span());
  EXPECT_DEATH(static_cast<void>(SealFrame(memory.span(), payload, {})), "check failed");
}

}  // namespace
}  // namespace slimgrad
