#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

namespace slimgrad {
namespace {

namespace fs = std::filesystem;

Status SystemError(int error, const char* what, const fs::path& path) {
  return IoError(path.string() + ": cannot " + what + ": " +
                 std::generic_category().message(error));
}

// Unlike mkstemp's, the permissions of what is made under this name are the user's usual ones.
fs::path TemporaryBeside(const fs::path& target) {
  static std::atomic<std::uint64_t> counter = 0;
  return target.parent_path() / ("." + target.filename().string() + ".partial-" +
                                 std::to_string(getpid()) + "-" + std::to_string(counter++));
}

// "a/b/" names the folder that "a/b" names.
fs::path WithoutTrailingSlash(const fs::path& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return clean.has_filename() ? clean : clean.parent_path();
}

Status CheckTarget(const fs::path& path) {
  const fs::path name = path.filename();
  if (name.empty() || name == "." || name == "..")
    return IoError(path.string() + ": expected a name, found none");
  return {};
}

// Makes `folder` and its ancestors; adds what it made to `made`, outermost first.
Status MakeFolders(const fs::path& folder, std::vector<fs::path>& made) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  SLIMGRAD_RETURN_IF_ERROR(MakeFolders(folder.parent_path(), made));
  if (mkdir(folder.c_str(), 0777) == 0) {
    made.push_back(folder);
  } else if (errno != EEXIST || !fs::is_directory(folder, error)) {
    return SystemError(errno, "make the folder", folder);
  }
  return {};
}

// Those that are still empty.
void RemoveFolders(const std::vector<fs::path>& made) {
  std::for_each(made.rbegin(), made.rend(), [](const fs::path& folder) { rmdir(folder.c_str()); });
}

Status WriteAll(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (fsync(descriptor) != 0) return SystemError(errno, "flush", path);
  return {};
}

// A new file with these bytes, on the disk; nothing is left on failure.
Status WriteNewFile(const fs::path& path, std::span<const std::byte> bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return SystemError(errno, "create", path);
  Status status = WriteAll(descriptor, bytes, path);
  if (close(descriptor) != 0 && status.ok()) status = SystemError(errno, "close", path);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

// Makes names in the folder durable. Best effort: some file systems cannot, and the names are
// already there.
void FlushFolder(const fs::path& folder) {
  const int descriptor =
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

Status CheckReplaceable(const fs::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return {};
  return IoError(path.string() + ": expected a regular file to replace, found " +
                 (S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe"));
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

// Temporaries and their targets; removes the temporaries that were not renamed.
class Staging {
 public:
  ~Staging() {
    for (std::size_t i = renamed_; i < moves_.size(); ++i) unlink(moves_[i].first.c_str());
  }

  Status Write(const fs::path& target, std::span<const std::byte> bytes) {
    SLIMGRAD_RETURN_IF_ERROR(CheckReplaceable(target));
    const fs::path temporary = TemporaryBeside(target);
    SLIMGRAD_RETURN_IF_ERROR(WriteNewFile(temporary, bytes));
    moves_.emplace_back(temporary, target);
    return {};
  }

  Status Rename() {
    for (; renamed_ < moves_.size(); ++renamed_) {
      const auto& [temporary, target] = moves_[renamed_];
      if (rename(temporary.c_str(), target.c_str()) != 0)
        return SystemError(errno, "replace", target);
    }
    return {};
  }

 private:
  std::vector<std::pair<fs::path, fs::path>> moves_;
  std::size_t renamed_ = 0;
};

Status WriteIntoFolder(const fs::path& folder, const std::map<std::string, std::string>& files) {
  Staging staging;
  for (const auto& [name, text] : files) {
    SLIMGRAD_RETURN_IF_ERROR(staging.Write(folder / name, BytesOf(text)));
  }
  SLIMGRAD_RETURN_IF_ERROR(staging.Rename());
  FlushFolder(folder);
  return {};
}

Status WriteNewFolder(const fs::path& folder, const std::map<std::string, std::string>& files) {
  SLIMGRAD_ASSIGN_OR_RETURN(PendingFolder pending, PendingFolder::Create(folder));
  for (const auto& [name, text] : files) {
    SLIMGRAD_RETURN_IF_ERROR(WriteNewFile(pending.path() / name, BytesOf(text)));
  }
  return pending.Commit();
}

}  // namespace

Status WriteFileAtomically(const fs::path& path, std::span<const std::byte> bytes) {
  SLIMGRAD_RETURN_IF_ERROR(CheckTarget(path));
  std::vector<fs::path> made;
  Status status = MakeFolders(path.parent_path(), made);
  if (status.ok()) {
    Staging staging;
    status = staging.Write(path, bytes);
    if (status.ok()) status = staging.Rename();
  }
  if (!status.ok()) {
    RemoveFolders(made);
    return status;
  }
  FlushFolder(path.parent_path());
  return {};
}

Status WriteFileAtomically(const fs::path& path, std::string_view text) {
  return WriteFileAtomically(path, BytesOf(text));
}

Status WriteFilesAtomically(const fs::path& folder,
                            const std::map<std::string, std::string>& files) {
  for (const auto& [name, text] : files) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
      return IoError(folder.string() + ": expected a plain file name, found \"" + name + "\"");
    }
  }
  std::error_code error;
  if (fs::is_directory(folder, error)) return WriteIntoFolder(folder, files);
  if (fs::exists(fs::status(folder, error)))
    return IoError(folder.string() + ": expected a folder, or nothing yet, found a file");
  return WriteNewFolder(folder, files);
}

Result<PendingFolder> PendingFolder::Create(const fs::path& target) {
  PendingFolder folder;
  folder.target_ = WithoutTrailingSlash(target);
  SLIMGRAD_RETURN_IF_ERROR(CheckTarget(folder.target_));
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder.target_, error))) {
    if (!fs::is_directory(folder.target_, error)) {
      return IoError(target.string() + ": expected a new or empty folder, found a file");
    }
    if (!fs::is_empty(folder.target_, error) || error) {
      return IoError(target.string() +
                     ": expected a new or empty folder, found one that is not empty");
    }
  }
  // On failure the destructor removes the parents made so far.
  SLIMGRAD_RETURN_IF_ERROR(MakeFolders(folder.target_.parent_path(), folder.parents_));
  const fs::path temporary = TemporaryBeside(folder.target_);
  if (mkdir(temporary.c_str(), 0777) != 0) return SystemError(errno, "make the folder", temporary);
  folder.temporary_ = temporary;
  return folder;
}

PendingFolder::PendingFolder(PendingFolder&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      parents_(std::exchange(other.parents_, {})) {}

PendingFolder& PendingFolder::operator=(PendingFolder&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(parents_, other.parents_);
  return *this;
}

PendingFolder::~PendingFolder() { Discard(); }

void PendingFolder::Discard() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  RemoveFolders(parents_);
  temporary_.clear();
  parents_.clear();
}

Status PendingFolder::Commit() {
  SLIMGRAD_CHECK(!temporary_.empty());
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(temporary_, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(error)) FlushFolder(entry->path());
  }
  FlushFolder(temporary_);
  if (rename(temporary_.c_str(), target_.c_str()) != 0)
    return SystemError(errno, "rename the finished folder to", target_);
  FlushFolder(target_.parent_path());
  temporary_.clear();
  parents_.clear();
  return {};
}

}  // namespace slimgrad
