// What the ranks of an exchange must have alike. They compare it at set-up, before anything else.
#pragma once

#include <cstdint>
#include <span>

#include "comm/group.h"
#include "core/tensor.h"

namespace slimgrad {

// One number a field, so that an error can name it. Its bytes are the message.
struct Identity {
  std::uint64_t version = 1;  // of the exchange
  std::uint64_t spec = 0;
  std::uint64_t tensors = 0;
  std::uint64_t seed = 0;
  std::uint64_t nonfinite = 0;
};

// Of names, shapes and dtypes, in their order.
std::uint64_t HashOf(std::span<const TensorSpec> tensors);

// kMismatch names the first rank and field that differ from this object's ranks. Every rank calls
// it.
Status ComparePeers(Group& group, const Identity& identity);

}  // namespace slimgrad
