// A payload is what one rank says about one tensor in one round: up to kMaxSections typed sections,
// written in place in the caller's memory. docs/wire_format.md is normative for the bytes;
// core/frame.h puts the header in front.
//
//   Payload payload(memory);                                  // capacity from the plan's bound
//   auto indices = payload.Add<std::uint32_t>(Tag::kIndex, k);
//   ...
//   SLIMGRAD_ASSIGN_OR_RETURN(auto values, view.Get<float>(Tag::kValue, k));
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"

namespace slimgrad {

static_assert(std::endian::native == std::endian::little,
              "payload sections are little-endian in memory");

// What a section holds. The numbers are wire format.
enum class Tag : std::uint8_t {
  kIndex = 1,     // which elements
  kValue = 2,     // their values or codes
  kScale = 3,     // one number a block
  kBits = 4,      // one bit an element
  kPositive = 5,  // level of set bits, a number a block
  kNegative = 6,  // level of clear bits, a number a block
};
// "index", ...; "?" for a number that is no Tag.
std::string_view NameOf(Tag tag);

struct SectionType {
  Tag tag;
  DType dtype;
  bool operator==(const SectionType&) const = default;
};

struct Section {
  SectionType type;
  std::span<const std::byte> bytes;

  std::size_t count() const { return bytes.size() / SizeOf(type.dtype); }
  template <class T>
  std::span<const T> As() const {
    SLIMGRAD_CHECK(type.dtype == kDTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

inline constexpr std::size_t kMaxSections = 8;
inline constexpr std::size_t kSectionAlignment = 16;
inline constexpr std::size_t kSectionHeaderBytes = 16;

// What stands on the wire in front of a section.
using SectionHeaderBytes = std::array<std::byte, kSectionHeaderBytes>;
SectionHeaderBytes HeaderOf(const Section& section);

// Bytes on the wire of a section that holds `bytes` bytes: its header, the data, zeros up to a
// multiple of 16.
constexpr std::size_t SectionBytes(std::size_t bytes) {
  return kSectionHeaderBytes +
         (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}
template <class T>
constexpr std::size_t SectionBytesOf(std::size_t count) {
  return SectionBytes(count * sizeof(T));
}

// Read-only sections in borrowed memory. Cheap to copy.
class PayloadView {
 public:
  PayloadView() = default;

  // kCorrupt unless `body` is a row of well-formed sections with distinct tags. `body` is aligned
  // to 16 (CHECKed). On a device, waits for each header, and leaves the zeros behind sections to
  // kernels/stamps.h.
  static Result<PayloadView> Parse(std::span<const std::byte> body, Memory& memory = HostMemory());

  // The same sections in other memory: what has the layout of this payload, whose sections all lie
  // in `mine`.
  PayloadView At(std::span<const std::byte> mine, std::span<const std::byte> other) const;

  // A payload of one section, for combined rounds, which travel as bare values.
  static PayloadView Single(SectionType type, std::span<const std::byte> bytes);

  std::span<const Section> sections() const { return {sections_.data(), count_}; }
  const Section* Find(Tag tag) const;

  // kCorrupt unless the section exists with this type (and, in the second form, this number of
  // elements).
  template <class T>
  Result<std::span<const T>> Get(Tag tag) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const Section* section, FindTyped({tag, kDTypeOf<T>}));
    return section->As<T>();
  }
  template <class T>
  Result<std::span<const T>> Get(Tag tag, std::size_t count) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const Section* section, FindTyped({tag, kDTypeOf<T>}));
    if (section->count() != count) return WrongCount(*section, count);
    return section->As<T>();
  }

 private:
  friend class Payload;
  Result<const Section*> FindTyped(SectionType type) const;
  static Status WrongCount(const Section& section, std::size_t expected);

  std::array<Section, kMaxSections> sections_ = {};
  std::size_t count_ = 0;
};

// Bytes at a place of a payload's or frame's memory that are not its contents: headers, and the
// zeros behind sections.
struct Stamp {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::array<std::byte, 64> bytes = {};
};
struct Stamps {
  std::array<Stamp, kMaxSections + 1> stamps;
  std::size_t count = 0;
  std::span<const Stamp> span() const { return {stamps.data(), count}; }
};

// A payload being written. Memory is the caller's, aligned to 16 (CHECKed), and outlives the
// payload and its views. In a device's memory the headers are left to kernels/stamps.h, for all of
// a frame at once.
class Payload {
 public:
  explicit Payload(std::span<std::byte> memory, Device device = Device::kCpu);

  // Appends a section; its contents are unspecified until written. CHECKs the capacity, and that
  // the tag is new.
  template <class T>
  std::span<T> Add(Tag tag, std::size_t count) {
    SLIMGRAD_CHECK(count <= memory_.size() / sizeof(T));
    const std::span<std::byte> bytes = AddBytes({tag, kDTypeOf<T>}, count * sizeof(T));
    return {reinterpret_cast<T*>(bytes.data()), count};
  }
  std::span<std::byte> AddBytes(SectionType type, std::size_t bytes);

  // Shortens the section that was added last to a number of whole elements, for codes whose length
  // is known only afterwards.
  void TrimLast(std::size_t bytes);

  const PayloadView& view() const { return view_; }
  std::span<const std::byte> body() const { return memory_.first(used_); }

 private:
  void FinishLast(std::size_t bytes);

  std::span<std::byte> memory_;
  Device device_;
  std::size_t used_ = 0;
  std::size_t last_begin_ = 0;  // offset of the last section's header
  PayloadView view_;
};

}  // namespace slimgrad
