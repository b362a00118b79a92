#include "kernels/stamps.h"

#include "core/frame.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

const Backend kBackend;
const FrameInfo kInfo = {0x0123456789ABCDEF, 1000, 3, 1};

// A frame with sections of `sizes` bytes, all of them one byte's value, as a device leaves it: what
// stands around the sections is not written.
struct Unsealed {
  explicit Unsealed(const std::vector<std::size_t>& sizes) {
    std::size_t bytes = kFrameHeaderBytes;
    for (const std::size_t size : sizes) bytes += SectionBytes(size);
    memory = Buffer<std::byte>(bytes);
    std::fill(memory.span().begin(), memory.span().end(), std::byte{0xEE});
    Payload payload(FrameBody(memory.span()), Device::kCuda);
    for (std::size_t s = 0; s < sizes.size(); ++s)
      payload.AddBytes({Tag(s + 1), DType::kU8}, sizes[s]);
    stamps = FrameStamps(payload.view(), memory.span(), kInfo);
  }
  std::vector<std::byte> bytes() const { return {memory.span().begin(), memory.span().end()}; }

  Buffer<std::byte> memory;
  Stamps stamps;
};

// The same frame as SealFrame writes it, but for the checksum, which is 0 on a device.
std::vector<std::byte> SealedOnTheHost(const std::vector<std::size_t>& sizes) {
  const Unsealed empty(sizes);
  Buffer<std::byte> memory(empty.memory.size());
  Payload payload(FrameBody(memory.span()));
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const std::span<std::byte> section = payload.AddBytes({Tag(s + 1), DType::kU8}, sizes[s]);
    std::fill(section.begin(), section.end(), std::byte{0xEE});
  }
  const std::span<const std::byte> frame = SealFrame(memory.span(), payload, kInfo);
  std::vector<std::byte> bytes(frame.begin(), frame.end());
  std::fill_n(bytes.begin() + 40, 8, std::byte{0});
  return bytes;
}

const std::vector<std::vector<std::size_t>> kLayouts = {
    {}, {0}, {1}, {15}, {16}, {17}, {1000}, {3, 0, 33}, {1, 2, 3, 4, 5, 6}};

TEST(StampsTest, WriteWhatTheHostSeals) {
  for (const auto& sizes : kLayouts) {
    Unsealed frame(sizes);
    subject::WriteStamps(kBackend, frame.stamps, frame.memory.span());
    EXPECT_EQ(frame.bytes(), SealedOnTheHost(sizes)) << sizes.size() << " sections";
    Unsealed expected(sizes);
    ref::WriteStamps(kBackend, expected.stamps, expected.memory.span());
    EXPECT_EQ(frame.bytes(), expected.bytes());
  }
}

TEST(StampsTest, EveryOtherByteIsFound) {
  for (const auto& sizes : kLayouts) {
    const Unsealed layout(sizes);
    std::vector<std::byte> right = SealedOnTheHost(sizes);
    std::uint64_t wrong = 5;
    subject::CheckStamps(kBackend, layout.stamps, std::span<const std::byte>(right), &wrong);
    EXPECT_EQ(wrong, 5U);  // added to, and none more
    for (std::size_t i = 0; i < right.size(); ++i) {
      right[i] ^= std::byte{0x10};
      std::uint64_t found = 0, expected = 0;
      subject::CheckStamps(kBackend, layout.stamps, std::span<const std::byte>(right), &found);
      ref::CheckStamps(kBackend, layout.stamps, right, &expected);
      EXPECT_EQ(found, expected) << "byte " << i;
      right[i] ^= std::byte{0x10};
    }
  }
}

TEST(StampsTest, AStampIsWrongOnce) {
  const std::vector<std::size_t> sizes = {1, 2, 3};
  const Unsealed layout(sizes);
  std::vector<std::byte> frame = SealedOnTheHost(sizes);
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) frame[i] ^= std::byte{0xFF};
  frame.back() ^= std::byte{1};
  std::uint64_t wrong = 0;
  subject::CheckStamps(kBackend, layout.stamps, std::span<const std::byte>(frame), &wrong);
  EXPECT_EQ(wrong, 2U);
}

TEST(StampsDeathTest, AFrameThatIsTooShortStops) {
  Unsealed frame({5});
  std::uint64_t wrong = 0;
  const auto shorter = frame.memory.span().first(frame.memory.size() - 1);
  EXPECT_DEATH(subject::WriteStamps(kBackend, frame.stamps, shorter), "check failed");
  EXPECT_DEATH(
      subject::CheckStamps(kBackend, frame.stamps, std::span<const std::byte>(shorter), &wrong),
      "check failed");
}

}  // namespace
}  // namespace slimgrad::kernels
