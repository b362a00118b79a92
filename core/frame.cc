#include "core/frame.h"

#include <cstring>
#include <string>

#include "core/hash.h"

namespace slimgrad {
namespace {

constexpr std::uint32_t kMagic = 0x46524753;  // "SGRF"

struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint8_t round;
  std::uint8_t sections;
  std::uint64_t spec_hash;
  std::uint64_t numel;
  std::uint64_t step;
  std::uint64_t body_bytes;
  std::uint64_t checksum;  // XXH3-64 of two hashes: the header before this field, and the body
};
static_assert(sizeof(Header) == kFrameHeaderBytes);

std::uint64_t Checksum(const Header& header, std::span<const std::byte> body) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  const std::uint64_t parts[2] = {Hash64(std::span(bytes, offsetof(Header, checksum))),
                                  Hash64(body)};
  return Hash64(std::as_bytes(std::span(parts)));
}

template <class T>
Status Wrong(const char* field, const T& expected, const T& found) {
  return Corrupt(std::string("frame ") + field + ": expected " + std::to_string(expected) +
                 ", found " + std::to_string(found));
}

template <class T>
Status CheckSame(const char* field, const T& expected, const T& found) {
  if (expected == found) return {};
  return Mismatch(std::string("frame ") + field + ": expected " + std::to_string(expected) +
                  ", found " + std::to_string(found));
}

Header HeaderFor(const FrameInfo& info, std::size_t sections, std::size_t body_bytes) {
  Header header = {};
  header.magic = kMagic;
  header.version = kFrameVersion;
  header.round = info.round;
  header.sections = static_cast<std::uint8_t>(sections);
  header.spec_hash = info.spec_hash;
  header.numel = info.numel;
  header.step = info.step;
  header.body_bytes = body_bytes;
  return header;
}

void Append(std::span<const std::byte> bytes, Stamp& stamp) {
  SLIMGRAD_CHECK(bytes.size() <= stamp.bytes.size() - stamp.size);
  std::memcpy(stamp.bytes.data() + stamp.size, bytes.data(), bytes.size());
  stamp.size += bytes.size();
}

}  // namespace

std::span<std::byte> FrameBody(std::span<std::byte> memory) {
  SLIMGRAD_CHECK(memory.size() >= kFrameHeaderBytes);
  return memory.subspan(kFrameHeaderBytes);
}

std::span<const std::byte> SealFrame(std::span<std::byte> memory, const Payload& payload,
                                     const FrameInfo& info) {
  SLIMGRAD_CHECK(payload.body().data() == FrameBody(memory).data());
  Header header = HeaderFor(info, payload.view().sections().size(), payload.body().size());
  header.checksum = Checksum(header, payload.body());
  std::memcpy(memory.data(), &header, sizeof header);
  return memory.first(kFrameHeaderBytes + payload.body().size());
}

Stamps FrameStamps(const PayloadView& payload, std::span<const std::byte> frame,
                   const FrameInfo& info) {
  SLIMGRAD_CHECK(frame.size() >= kFrameHeaderBytes);
  const Header header =
      HeaderFor(info, payload.sections().size(), frame.size() - kFrameHeaderBytes);
  Stamps stamps;
  Stamp stamp;
  Append(std::as_bytes(std::span(&header, 1)), stamp);
  for (const Section& section : payload.sections()) {
    const auto begin = static_cast<std::size_t>(section.bytes.data() - frame.data());
    // Zeros up to the header, which are there already.
    stamp.size = begin - kSectionHeaderBytes - stamp.offset;
    Append(HeaderOf(section), stamp);
    stamps.stamps[stamps.count++] = stamp;
    stamp = {begin + section.bytes.size(), 0, {}};
  }
  stamp.size = frame.size() - stamp.offset;
  if (stamp.size > 0) stamps.stamps[stamps.count++] = stamp;
  return stamps;
}

Result<Frame> ReadFrame(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return Wrong("bytes", sizeof header, bytes.size());
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return Wrong("magic", kMagic, header.magic);
  if (header.version != kFrameVersion) return Wrong<int>("version", kFrameVersion, header.version);
  const std::span<const std::byte> rest = bytes.subspan(sizeof header);
  if (header.body_bytes > rest.size())
    return Corrupt("frame body bytes: expected at most " + std::to_string(rest.size()) +
                   ", found " + std::to_string(header.body_bytes));
  if (header.body_bytes % kSectionAlignment != 0)
    return Corrupt("frame body bytes: expected a multiple of 16, found " +
                   std::to_string(header.body_bytes));
  const std::span<const std::byte> body = rest.first(header.body_bytes);
  if (const std::uint64_t sum = Checksum(header, body); header.checksum != sum)
    return Wrong("checksum", sum, header.checksum);
  Result<PayloadView> payload = PayloadView::Parse(body);
  if (!payload.ok()) return payload.status().In("frame");
  if (payload->sections().size() != header.sections)
    return Wrong<std::size_t>("sections", header.sections, payload->sections().size());
  return Frame{{header.spec_hash, header.numel, header.step, header.round},
               *payload,
               kFrameHeaderBytes + body.size()};
}

Result<PayloadView> OpenFrame(std::span<const std::byte> bytes, const FrameInfo& expected) {
  SLIMGRAD_ASSIGN_OR_RETURN(const Frame frame, ReadFrame(bytes));
  if (frame.bytes != bytes.size()) return Wrong("bytes", frame.bytes, bytes.size());
  SLIMGRAD_RETURN_IF_ERROR(CheckSame("spec hash", expected.spec_hash, frame.info.spec_hash));
  SLIMGRAD_RETURN_IF_ERROR(CheckSame("element count", expected.numel, frame.info.numel));
  SLIMGRAD_RETURN_IF_ERROR(CheckSame("step", expected.step, frame.info.step));
  SLIMGRAD_RETURN_IF_ERROR(CheckSame<int>("round", expected.round, frame.info.round));
  return frame.payload;
}

}  // namespace slimgrad
