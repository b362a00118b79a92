#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

namespace slimgrad {
namespace {

static_assert(sizeof(off_t) == 8, "files of more than 2 GiB need 64-bit offsets");

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status SystemError(int error, const char* what) {
  return IoError(std::string("cannot ") + what + ": " + std::generic_category().message(error));
}

Result<std::span<const std::byte>> Map(int descriptor) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) return SystemError(errno, "examine");
  if (!S_ISREG(info.st_mode))
    return IoError(std::string("expected a regular file, found ") + KindOf(info.st_mode));
  if (info.st_size == 0) return std::span<const std::byte>();  // mmap refuses a length of 0
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > std::numeric_limits<std::size_t>::max())
    return IoError("expected a file that fits in the address space");
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return SystemError(errno, "map");
  return std::span(static_cast<const std::byte*>(data), static_cast<std::size_t>(size));
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return SystemError(errno, "open").In(path.string());
  Result<std::span<const std::byte>> bytes = Map(descriptor);
  close(descriptor);  // the map lives on
  if (!bytes.ok()) return bytes.status().In(path.string());
  return MappedFile(*bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace slimgrad
