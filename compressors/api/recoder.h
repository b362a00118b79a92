// Recoders follow a codec after "|" and rewrite one kind of section of its payload:
//
//   top_k | delta_index | fp16_values
#pragma once

#include <cstddef>
#include <memory>

#include "compressors/api/codec.h"

namespace slimgrad {

// Immutable. Threads: const calls may run at once.
class Recoder {
 public:
  virtual ~Recoder() = default;

  virtual SectionType from() const = 0;  // the section that it takes up
  virtual SectionType to() const = 0;    // what it makes of it; the tag is the same

  // Bytes that `to` may need for `count` elements of `from`.
  virtual std::size_t Bound(std::size_t count) const = 0;
  // Whether `to` has the same size for every content.
  virtual bool fixed_size() const = 0;
  // Whether Decode gives back what Encode was given, bit for bit.
  virtual bool lossless() const = 0;

  // Adds the section `to` to `out`, which has room for Bound().
  virtual void Encode(const Section& section, const Context& context, Payload& out) const = 0;
  // Adds the section `from`, of `count` elements, to `out`. Trusts nothing: kCorrupt for what
  // Encode cannot have made.
  virtual Status Decode(const Section& section, std::size_t count, const Context& context,
                        Payload& out) const = 0;
};

// The codec followed by the recoder; CHECKs that the codec has a section recoder->from() and one
// tagged kValue, and that its payloads are gathered: what is combined has to stay as it is.
AnyCodec Recode(AnyCodec codec, std::shared_ptr<const Recoder> recoder);

}  // namespace slimgrad
