#include "comm/peers.h"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/buffer.h"
#include "core/hash.h"

namespace slimgrad {
namespace {

constexpr std::array kFields = {"exchange version", "compressor spec",
                                "tensors (names, shapes, dtypes)", "seed", "nonfinite rule"};
static_assert(sizeof(Identity) == kFields.size() * sizeof(std::uint64_t));

}  // namespace

std::uint64_t HashOf(std::span<const TensorSpec> tensors) {
  Hasher hasher;
  for (const TensorSpec& tensor : tensors) {
    hasher.Add(std::uint64_t{tensor.name.size()})
        .Add(tensor.name)
        .Add(std::uint64_t{tensor.shape.size()});
    for (std::int64_t extent : tensor.shape) hasher.Add(static_cast<std::uint64_t>(extent));
    hasher.Add(static_cast<std::uint64_t>(tensor.dtype));
  }
  return hasher.Digest();
}

Status ComparePeers(Group& group, const Identity& identity) {
  Buffer<Identity> mine(1);
  mine.span()[0] = identity;
  const std::vector<Bytes> messages(group.local_ranks().size(), std::as_bytes(mine.span()));
  TrafficRow ignored(group.size());
  const auto gathered = group.AllGather(messages, ignored);
  if (!gathered.ok()) {
    if (group.HoldsMemory()) Abandon(std::move(mine));
    return gathered.status();
  }
  const std::span<const Bytes> all = *gathered;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != sizeof(Identity))
      return Mismatch(fmt::format("rank {}: is no slimgrad exchange", rank));
    const auto* theirs = reinterpret_cast<const std::uint64_t*>(all[rank].data());
    const auto* ours = reinterpret_cast<const std::uint64_t*>(mine.data());
    for (std::size_t f = 0; f < kFields.size(); ++f)
      if (theirs[f] != ours[f])
        return Mismatch(fmt::format("rank {}: {}: expected {:016x} as on rank {}, found {:016x}",
                                    rank, kFields[f], ours[f], group.local_ranks()[0], theirs[f]));
  }
  return {};
}

}  // namespace slimgrad
