// A file's bytes without reading it: large traces are opened lazily, page by page.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/status.h"

namespace slimgrad {

// Read-only map of a regular file; owns the map, not the file. Moving it leaves the bytes where
// they are, so views into them stay valid as long as some MappedFile holds the map. Safe to read
// from many threads. The file must not shrink while it is mapped: the operating system would then
// stop the process (SIGBUS).
class MappedFile {
 public:
  // kIo, with path and reason, when the file is missing, unreadable or anything but a regular file.
  // Never blocks on a FIFO.
  static Result<MappedFile> Open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace slimgrad
