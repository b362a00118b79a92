#include "core/payload.h"

#include <cstring>
#include <string>

namespace slimgrad {
namespace {

// On the wire in front of every section.
struct SectionHeader {
  std::uint8_t tag;
  std::uint8_t dtype;
  std::uint8_t zero[6];
  std::uint64_t bytes;
};
static_assert(sizeof(SectionHeader) == kSectionHeaderBytes);

bool Aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kSectionAlignment == 0; }

std::string TypeText(SectionType type) {
  return std::string(NameOf(type.tag)) + " of " + std::string(NameOf(type.dtype));
}

Status CheckHeader(const SectionHeader& header, std::size_t room) {
  if (NameOf(Tag{header.tag}) == "?")
    return Corrupt("section tag: expected 1 to 6, found " + std::to_string(header.tag));
  const std::size_t size = SizeOf(DType{header.dtype});
  if (size == 0)
    return Corrupt("section dtype: expected 1 to 11, found " + std::to_string(header.dtype));
  for (std::uint8_t byte : header.zero)
    if (byte != 0)
      return Corrupt("section header: expected zeros in bytes 2 to 7, found " +
                     std::to_string(byte));
  if (header.bytes > room)
    return Corrupt("section bytes: expected at most " + std::to_string(room) + ", found " +
                   std::to_string(header.bytes));
  if (header.bytes % size != 0)
    return Corrupt("section bytes: expected a multiple of " + std::to_string(size) + ", found " +
                   std::to_string(header.bytes));
  return {};
}

Status CheckPadding(std::span<const std::byte> padding, const Memory& memory) {
  if (memory.device() != Device::kCpu) return {};
  for (std::byte byte : padding)
    if (byte != std::byte{0}) return Corrupt("section padding: expected zeros, found another byte");
  return {};
}

}  // namespace

std::string_view NameOf(Tag tag) {
  switch (tag) {
    case Tag::kIndex: return "index";
    case Tag::kValue: return "value";
    case Tag::kScale: return "scale";
    case Tag::kBits: return "bits";
    case Tag::kPositive: return "positive";
    case Tag::kNegative: return "negative";
  }
  return "?";
}

Result<PayloadView> PayloadView::Parse(std::span<const std::byte> body, Memory& memory) {
  SLIMGRAD_CHECK(Aligned(body.data()));
  PayloadView view;
  while (!body.empty()) {
    if (view.count_ == kMaxSections) return Corrupt("sections: expected at most 8, found more");
    SectionHeader header;
    if (body.size() < sizeof header)
      return Corrupt("section header: expected 16 bytes, found " + std::to_string(body.size()));
    memory.Read(&header, body.data(), sizeof header);
    SLIMGRAD_RETURN_IF_ERROR(CheckHeader(header, body.size() - sizeof header));
    const std::size_t whole = SectionBytes(header.bytes);
    if (whole > body.size())
      return Corrupt("section padding: expected a multiple of 16 bytes, found fewer");
    if (view.Find(Tag{header.tag}))
      return Corrupt("section tag: expected each once, found " +
                     std::string(NameOf(Tag{header.tag})) + " twice");
    SLIMGRAD_RETURN_IF_ERROR(CheckPadding(
        body.subspan(sizeof header + header.bytes, whole - sizeof header - header.bytes), memory));
    view.sections_[view.count_++] = {{Tag{header.tag}, DType{header.dtype}},
                                     body.subspan(sizeof header, header.bytes)};
    body = body.subspan(whole);
  }
  return view;
}

PayloadView PayloadView::Single(SectionType type, std::span<const std::byte> bytes) {
  PayloadView view;
  view.sections_[view.count_++] = {type, bytes};
  return view;
}

const Section* PayloadView::Find(Tag tag) const {
  for (const Section& section : sections())
    if (section.type.tag == tag) return &section;
  return nullptr;
}

Result<const Section*> PayloadView::FindTyped(SectionType type) const {
  const Section* section = Find(type.tag);
  if (!section) return Corrupt("payload: expected a section " + TypeText(type) + ", found none");
  if (section->type != type)
    return Corrupt("payload: expected a section " + TypeText(type) + ", found " +
                   TypeText(section->type));
  return section;
}

Status PayloadView::WrongCount(const Section& section, std::size_t expected) {
  return Corrupt("section " + TypeText(section.type) + ": expected " + std::to_string(expected) +
                 " elements, found " + std::to_string(section.count()));
}

PayloadView PayloadView::At(std::span<const std::byte> mine,
                            std::span<const std::byte> other) const {
  SLIMGRAD_CHECK(mine.size() == other.size());
  PayloadView view = *this;
  for (std::size_t s = 0; s < count_; ++s) {
    const auto offset = static_cast<std::size_t>(sections_[s].bytes.data() - mine.data());
    view.sections_[s].bytes = other.subspan(offset, sections_[s].bytes.size());
  }
  return view;
}

SectionHeaderBytes HeaderOf(const Section& section) {
  SectionHeader header = {};
  header.tag = static_cast<std::uint8_t>(section.type.tag);
  header.dtype = static_cast<std::uint8_t>(section.type.dtype);
  header.bytes = section.bytes.size();
  return std::bit_cast<SectionHeaderBytes>(header);
}

Payload::Payload(std::span<std::byte> memory, Device device) : memory_(memory), device_(device) {
  SLIMGRAD_CHECK(Aligned(memory.data()));
}

std::span<std::byte> Payload::AddBytes(SectionType type, std::size_t bytes) {
  SLIMGRAD_CHECK(view_.count_ < kMaxSections && !view_.Find(type.tag));
  SLIMGRAD_CHECK(bytes <= memory_.size() && SectionBytes(bytes) <= memory_.size() - used_);
  SLIMGRAD_CHECK(bytes % SizeOf(type.dtype) == 0);
  last_begin_ = used_;
  const std::span<std::byte> data = memory_.subspan(used_ + kSectionHeaderBytes, bytes);
  view_.sections_[view_.count_++].type = type;
  FinishLast(bytes);
  return data;
}

void Payload::TrimLast(std::size_t bytes) {
  SLIMGRAD_CHECK(view_.count_ > 0);
  const Section& last = view_.sections_[view_.count_ - 1];
  SLIMGRAD_CHECK(bytes <= last.bytes.size() && bytes % SizeOf(last.type.dtype) == 0);
  FinishLast(bytes);
}

void Payload::FinishLast(std::size_t bytes) {
  Section& section = view_.sections_[view_.count_ - 1];
  std::byte* const begin = memory_.data() + last_begin_;
  const std::size_t whole = SectionBytes(bytes);
  section.bytes = {begin + kSectionHeaderBytes, bytes};
  used_ = last_begin_ + whole;
  if (device_ != Device::kCpu) return;
  const SectionHeaderBytes header = HeaderOf(section);
  std::memcpy(begin, header.data(), header.size());
  std::memset(begin + header.size() + bytes, 0, whole - header.size() - bytes);
}

}  // namespace slimgrad
