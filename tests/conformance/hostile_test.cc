// Payloads whose checksum is right and whose contents are not: nothing crashes or reads out of
// bounds (which address sanitizer sees: every payload and result has memory of exactly its size),
// and what the plan does not allow is refused.
#include <cstring>
#include <functional>
#include <random>

#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class HostilePayloads : public ForEverySpec {};

struct LooseSection {
  SectionType type;
  Bytestring bytes;
};

// Many elements, so that top_k keeps enough for its order to be wrong.
constexpr std::size_t kElements = 60;

// One rank in the middle of a step: its payload of round 0 is there to be tampered with.
class Victim {
 public:
  explicit Victim(const std::string& spec)
      : rank_(Make(spec), Tensors({{kElements}})[0]), gather_(IsGather(rank_.plan())) {
    const Round& round = rank_.plan().rounds[0];
    const std::size_t bytes =
        gather_ ? round.bound : SectionBytes(round.count * SizeOf(round.dtype));
    memory_ = Buffer<std::byte>(bytes);
    Payload payload(memory_.span());
    rank_.compressor().Send(0, RandomValues(kElements, 1), rank_.state(), rank_.context(), payload);
    own_ = payload.view();
    for (const Section& section : payload.view().sections())
      sections_.push_back({section.type, {section.bytes.begin(), section.bytes.end()}});
  }

  const std::vector<LooseSection>& sections() const { return sections_; }
  bool gather() const { return gather_; }
  std::size_t bound() const { return rank_.plan().rounds[0].bound; }

  // Takes a body as the exchange would, through the parser.
  Status Take(std::span<const std::byte> body) {
    const Buffer<std::byte> exact(body.size());
    std::copy(body.begin(), body.end(), exact.data());
    SLIMGRAD_ASSIGN_OR_RETURN(const PayloadView view, PayloadView::Parse(exact.span()));
    return Receive(view);
  }

  Status Take(const std::vector<LooseSection>& sections) {
    if (!gather_) {  // travels as bare values
      const Buffer<std::byte> exact(sections[0].bytes.size());
      std::copy(sections[0].bytes.begin(), sections[0].bytes.end(), exact.data());
      return Receive(PayloadView::Single(sections[0].type, exact.span()));
    }
    return Take(BodyOf(sections));
  }

  static Bytestring BodyOf(const std::vector<LooseSection>& sections) {
    std::size_t bytes = 0;
    for (const LooseSection& section : sections) bytes += SectionBytes(section.bytes.size());
    const Buffer<std::byte> memory(bytes);
    Payload payload(memory.span());
    for (const LooseSection& section : sections) {
      const auto to = payload.AddBytes(section.type, section.bytes.size());
      std::copy(section.bytes.begin(), section.bytes.end(), to.begin());
    }
    return {payload.body().begin(), payload.body().end()};
  }

 private:
  static bool IsGather(const Plan& plan) { return plan.rounds[0].kind == Round::Kind::kGather; }

  Status Receive(const PayloadView& view) {
    const Buffer<float> average(kElements);
    return rank_.compressor().Receive(0, {{&view, 1}, own_}, rank_.state(), rank_.context(),
                                      average.span());
  }

  OneRank rank_;
  bool gather_;
  Buffer<std::byte> memory_;
  PayloadView own_;
  std::vector<LooseSection> sections_;
};

TEST_P(HostilePayloads, TheHonestOneIsTaken) {
  Victim victim(spec());
  const Status status = victim.Take(victim.sections());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(HostilePayloads, WrongCountsAreRefused) {
  Victim victim(spec());
  for (std::size_t s = 0; s < victim.sections().size(); ++s) {
    const std::size_t element = SizeOf(victim.sections()[s].type.dtype);
    for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
      std::vector<LooseSection> sections = victim.sections();
      const std::size_t honest = sections[s].bytes.size() / element;
      if (count == honest) continue;
      sections[s].bytes.resize(count * element);
      EXPECT_FALSE(victim.Take(sections).ok()) << NameOf(sections[s].type.tag) << ", " << count;
    }
    for (int more : {-1, 1}) {
      std::vector<LooseSection> sections = victim.sections();
      sections[s].bytes.resize(sections[s].bytes.size() + static_cast<std::size_t>(more) * element);
      EXPECT_FALSE(victim.Take(sections).ok()) << NameOf(sections[s].type.tag) << ", " << more;
    }
  }
}

TEST_P(HostilePayloads, MissingSectionsAreRefused) {
  Victim victim(spec());
  if (!victim.gather()) return;  // one section, which is the payload
  for (std::size_t s = 0; s < victim.sections().size(); ++s) {
    std::vector<LooseSection> sections = victim.sections();
    sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(s));
    EXPECT_FALSE(victim.Take(sections).ok()) << s;
  }
  EXPECT_FALSE(victim.Take(Bytestring()).ok());
}

TEST_P(HostilePayloads, WrongTypesAreRefused) {
  Victim victim(spec());
  for (std::size_t s = 0; s < victim.sections().size(); ++s) {
    for (int dtype = 1; dtype <= 11; ++dtype) {
      std::vector<LooseSection> sections = victim.sections();
      LooseSection& section = sections[s];
      const DType other{static_cast<std::uint8_t>(dtype)};
      if (other == section.type.dtype || section.bytes.size() % SizeOf(other) != 0) continue;
      section.type.dtype = other;
      EXPECT_FALSE(victim.Take(sections).ok()) << NameOf(section.type.tag) << NameOf(other);
    }
    for (int tag = 1; tag <= 6; ++tag) {
      std::vector<LooseSection> sections = victim.sections();
      const Tag other{static_cast<std::uint8_t>(tag)};
      bool there = false;
      for (const LooseSection& section : sections) there |= section.type.tag == other;
      if (there) continue;
      sections[s].type.tag = other;
      EXPECT_FALSE(victim.Take(sections).ok()) << NameOf(other);
    }
  }
}

TEST_P(HostilePayloads, WrongIndicesAreRefused) {
  Victim victim(spec());
  for (std::size_t s = 0; s < victim.sections().size(); ++s) {
    if (victim.sections()[s].type != SectionType{Tag::kIndex, DType::kU32}) continue;
    std::vector<std::uint32_t> honest(victim.sections()[s].bytes.size() / sizeof(std::uint32_t));
    std::memcpy(honest.data(), victim.sections()[s].bytes.data(), honest.size() * 4);
    ASSERT_GE(honest.size(), 3U);
    const auto take = [&](const std::function<void(std::vector<std::uint32_t>&)>& tamper) {
      std::vector<std::uint32_t> indices = honest;
      tamper(indices);
      std::vector<LooseSection> sections = victim.sections();
      std::memcpy(sections[s].bytes.data(), indices.data(), indices.size() * 4);
      return victim.Take(sections);
    };
    EXPECT_TRUE(take([](auto&) {}).ok());
    EXPECT_FALSE(take([](auto& i) { std::swap(i[0], i[1]); }).ok());
    EXPECT_FALSE(take([](auto& i) { i[1] = i[0]; }).ok());
    EXPECT_FALSE(take([](auto& i) { i.back() = kElements; }).ok());
    EXPECT_FALSE(take([](auto& i) { i.back() = 0xFFFFFFFF; }).ok());
    EXPECT_FALSE(take([](auto& i) { i.front() = 0x80000000; }).ok());
  }
}

// A code that names an index beyond the tensor, is not in its shortest form, or ends too early.
TEST_P(HostilePayloads, WrongIndexCodesAreRefused) {
  Victim victim(spec());
  for (std::size_t s = 0; s < victim.sections().size(); ++s) {
    if (victim.sections()[s].type != SectionType{Tag::kIndex, DType::kU8}) continue;
    const auto take = [&](std::initializer_list<unsigned> last) {
      std::vector<LooseSection> sections = victim.sections();
      sections[s].bytes.pop_back();  // gaps below 128: one byte each
      for (unsigned byte : last) sections[s].bytes.push_back(std::byte(byte));
      return victim.Take(sections);
    };
    EXPECT_FALSE(take({}).ok());
    EXPECT_FALSE(take({0x80}).ok());
    EXPECT_FALSE(take({0x80, 0x00}).ok());
    EXPECT_FALSE(take({0x7F}).ok());  // 127 further on: beyond 60 elements
    EXPECT_FALSE(take({0xFF, 0xFF, 0xFF, 0xFF, 0x0F}).ok());
    EXPECT_FALSE(take({0xFF, 0xFF, 0xFF, 0xFF, 0x7F}).ok());
    EXPECT_FALSE(take({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}).ok());
  }
}

// Whatever the bytes are: an error or a result, within bounds.
TEST_P(HostilePayloads, RandomContentsCrashNothing) {
  Victim victim(spec());
  std::mt19937 random(17);
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  int taken = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<LooseSection> sections = victim.sections();
    LooseSection& section = sections[any(sections.size())];
    if (round % 3 == 0) section.bytes.resize(any(victim.gather() ? 400 : 300));
    if (round % 5 == 0) section.type.dtype = DType{static_cast<std::uint8_t>(1 + any(11))};
    section.bytes.resize(section.bytes.size() / SizeOf(section.type.dtype) *
                         SizeOf(section.type.dtype));
    for (std::byte& byte : section.bytes)
      if (round % 2 == 0 || any(8) == 0) byte = std::byte(random());
    taken += victim.Take(sections).ok();
    if (!victim.gather()) continue;
    // The same without the writer's care: any byte of the body, headers and padding too.
    Bytestring body = Victim::BodyOf(sections);
    for (std::size_t i = 0; i <= any(4); ++i) body[any(body.size())] = std::byte(random());
    taken += victim.Take(body).ok();
  }
  EXPECT_GT(taken, 0) << "no case came past the first checks";
}

SLIMGRAD_FOR_EVERY_SPEC(HostilePayloads);

}  // namespace
}  // namespace slimgrad::conformance
