#include "core/scratch.h"

namespace slimgrad {

ScratchScope::ScratchScope(Scratch& scratch)
    : scratch_(scratch),
      blocks_(scratch.open_),
      used_(scratch.open_ ? scratch.blocks_[scratch.open_ - 1].used : 0) {}

std::span<std::byte> Scratch::Take(std::size_t bytes) {
  SLIMGRAD_CHECK(bytes <= PTRDIFF_MAX - kBufferAlignment);
  const std::size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  if (open_ == 0 || blocks_[open_ - 1].memory.size() - blocks_[open_ - 1].used < rounded) {
    // A kept block that is too small is replaced, so sizes settle after the first calls.
    if (open_ == blocks_.size()) blocks_.emplace_back();
    if (blocks_[open_].memory.size() < rounded)
      blocks_[open_].memory = Buffer<std::byte>(rounded, *memory_);
    blocks_[open_].used = 0;
    ++open_;
  }
  Block& block = blocks_[open_ - 1];
  std::span<std::byte> taken = block.memory.span().subspan(block.used, bytes);
  block.used += rounded;
  return taken;
}

void Scratch::Release(std::size_t blocks, std::size_t used) {
  open_ = blocks;
  if (open_ > 0) blocks_[open_ - 1].used = used;
}

}  // namespace slimgrad
