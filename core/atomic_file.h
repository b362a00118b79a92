// Files and folders that appear whole or not at all: everything is written under a temporary name
// beside the target, flushed to the disk and renamed. A process that is killed meanwhile can leave
// the temporary (".NAME.partial-...") but never half a target.
//
// All errors are kIo, with path and reason. Parents of a target that do not exist are made, and
// removed again on failure.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace slimgrad {

// Replaces a regular file or makes a new one; refuses to replace anything else (a folder, a
// device).
Status WriteFileAtomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view text);

// Several files of one folder. A folder that does not exist appears with all of them at once. In
// one that exists, all are written aside before the first is renamed: only a failure of a rename
// itself, which nothing but a change by someone else can cause then, leaves the folder with some of
// them new. Names are plain: no '/', not empty, "." or "..".
Status WriteFilesAtomically(const std::filesystem::path& folder,
                            const std::map<std::string, std::string>& files);

// A folder under construction: fill path(), then Commit(). Destroying it before that removes
// everything. Move-only.
class PendingFolder {
 public:
  // The target must not exist, or be an empty folder.
  static Result<PendingFolder> Create(const std::filesystem::path& target);

  PendingFolder(PendingFolder&& other) noexcept;
  PendingFolder& operator=(PendingFolder&& other) noexcept;
  ~PendingFolder();

  const std::filesystem::path& path() const { return temporary_; }

  // Flushes the folders below path() (files are flushed by whoever wrote them) and renames. Fails
  // when the target was filled meanwhile. Call once; afterwards only destruction is allowed.
  Status Commit();

 private:
  PendingFolder() = default;
  void Discard();

  std::filesystem::path target_;
  std::filesystem::path temporary_;             // empty: nothing to remove
  std::vector<std::filesystem::path> parents_;  // made for it, outermost first
};

}  // namespace slimgrad
