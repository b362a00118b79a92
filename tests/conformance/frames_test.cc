// Damaged frames are refused: every byte flipped, every bit too, every length cut.
#include <array>
#include <cstring>

#include "core/frame.h"
#include "core/hash.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class Frames : public ForEverySpec {};

constexpr FrameInfo kInfo = {0x1234, 40, 7, 1};

// A frame of the spec's payload, of 40 elements, in memory of exactly its size.
class SealedFrame {
 public:
  explicit SealedFrame(const std::string& spec) {
    OneRank rank(Make(spec), Tensors({{40}})[0]);
    rank.Step(RandomValues(40, 1));
    const Round& round = rank.plan().rounds[0];
    const std::size_t bound = round.kind == Round::Kind::kGather
                                  ? round.bound
                                  : SectionBytes(round.count * SizeOf(round.dtype));
    Buffer<std::byte> memory(kFrameHeaderBytes + bound);
    OneRank again(Make(spec), Tensors({{40}})[0]);
    Payload payload(FrameBody(memory.span()));
    again.compressor().Send(0, RandomValues(40, 1), again.state(), again.context(), payload);
    const auto frame = SealFrame(memory.span(), payload, kInfo);
    bytes_ = Buffer<std::byte>(frame.size());
    std::copy(frame.begin(), frame.end(), bytes_.data());
  }
  std::span<std::byte> bytes() const { return bytes_.span(); }

 private:
  Buffer<std::byte> bytes_;
};

TEST_P(Frames, OpenAsTheyWereSealed) {
  const SealedFrame frame(spec());
  const auto opened = OpenFrame(frame.bytes(), kInfo);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_FALSE(opened->sections().empty());
}

TEST_P(Frames, EveryFlippedByteIsRefused) {
  const SealedFrame frame(spec());
  for (std::size_t i = 0; i < frame.bytes().size(); ++i)
    for (unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      frame.bytes()[i] ^= std::byte(flip);
      EXPECT_FALSE(OpenFrame(frame.bytes(), kInfo).ok()) << "byte " << i << " ^ " << flip;
      frame.bytes()[i] ^= std::byte(flip);
    }
  EXPECT_TRUE(OpenFrame(frame.bytes(), kInfo).ok());
}

TEST_P(Frames, EveryTruncationIsRefused) {
  const SealedFrame frame(spec());
  for (std::size_t size = 0; size < frame.bytes().size(); ++size) {
    // In memory of its own, so that a read beyond the end is one beyond the allocation.
    const Buffer<std::byte> part(size);
    std::copy(frame.bytes().begin(), frame.bytes().begin() + static_cast<std::ptrdiff_t>(size),
              part.data());
    const auto opened = OpenFrame(part.span(), kInfo);
    ASSERT_FALSE(opened.ok()) << size << " bytes";
    EXPECT_EQ(opened.status().code(), Code::kCorrupt);
  }
}

TEST_P(Frames, MoreBytesThanTheFrameAreRefused) {
  const SealedFrame frame(spec());
  const Buffer<std::byte> longer(frame.bytes().size() + 16);
  std::copy(frame.bytes().begin(), frame.bytes().end(), longer.data());
  EXPECT_FALSE(OpenFrame(longer.span(), kInfo).ok());
}

TEST_P(Frames, OfAnotherIdentityAreRefusedByName) {
  const SealedFrame frame(spec());
  const auto expect = [&](FrameInfo info, const char* field) {
    const auto opened = OpenFrame(frame.bytes(), info);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), Code::kMismatch);
    EXPECT_NE(opened.status().message().find(field), std::string::npos)
        << opened.status().message();
  };
  expect({0x1235, 40, 7, 1}, "spec hash");
  expect({0x1234, 41, 7, 1}, "element count");
  expect({0x1234, 40, 8, 1}, "step");
  expect({0x1234, 40, 7, 0}, "round");
}

// With a checksum that is right for them, too: a frame's fields are checked for their own sake.
TEST_P(Frames, AWrongNumberOfSectionsIsRefusedWhateverTheChecksum) {
  constexpr std::size_t kSectionsAt = 7, kChecksumAt = 40;
  const SealedFrame frame(spec());
  frame.bytes()[kSectionsAt] ^= std::byte{1};
  const std::array parts = {Hash64(frame.bytes().first(kChecksumAt)),
                            Hash64(frame.bytes().subspan(kFrameHeaderBytes))};
  const std::uint64_t checksum = Hash64(std::as_bytes(std::span(parts)));
  std::memcpy(frame.bytes().data() + kChecksumAt, &checksum, sizeof checksum);
  const auto opened = OpenFrame(frame.bytes(), kInfo);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("sections"), std::string::npos)
      << opened.status().message();
}

SLIMGRAD_FOR_EVERY_SPEC(Frames);

}  // namespace
}  // namespace slimgrad::conformance
