#include "core/mapped_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/atomic_file.h"

namespace slimgrad {
namespace {

using ::testing::HasSubstr;

std::filesystem::path Path(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / name;
}

std::string Text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Status ErrorOf(const std::filesystem::path& path) {
  const Result<MappedFile> file = MappedFile::Open(path);
  return file.ok() ? Status() : file.status();
}

TEST(MappedFile, HasTheFilesBytes) {
  const std::string text(10'000, 'x');
  ASSERT_TRUE(WriteFileAtomically(Path("mapped"), text).ok());
  const Result<MappedFile> file = MappedFile::Open(Path("mapped"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(Text(*file), text);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->bytes().data()) % 4096, 0U);
}

TEST(MappedFile, MovingKeepsTheBytesInPlace) {
  ASSERT_TRUE(WriteFileAtomically(Path("moved"), std::string_view("abc")).ok());
  MappedFile first = MappedFile::Open(Path("moved")).value();
  const std::byte* where = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT: the moved-from state is documented by this test
  EXPECT_EQ(second.bytes().data(), where);
  MappedFile third;
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), where);
  EXPECT_EQ(Text(third), "abc");
}

TEST(MappedFile, OutlivesTheName) {
  ASSERT_TRUE(WriteFileAtomically(Path("unlinked"), std::string_view("still here")).ok());
  const MappedFile file = MappedFile::Open(Path("unlinked")).value();
  std::filesystem::remove(Path("unlinked"));
  EXPECT_EQ(Text(file), "still here");
}

TEST(MappedFile, AnEmptyFileIsFine) {
  ASSERT_TRUE(WriteFileAtomically(Path("empty"), std::string_view()).ok());
  const Result<MappedFile> file = MappedFile::Open(Path("empty"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const Status missing = ErrorOf(Path("missing"));
  EXPECT_EQ(missing.code(), Code::kIo);
  EXPECT_EQ(missing.message(),
            Path("missing").string() + ": cannot open: No such file or directory");

  EXPECT_THAT(ErrorOf(testing::TempDir()).message(),
              HasSubstr("expected a regular file, found a folder"));
  EXPECT_THAT(ErrorOf("/dev/null").message(), HasSubstr("expected a regular file, found a device"));

  std::filesystem::remove(Path("fifo"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf(Path("fifo")).message(), HasSubstr("expected a regular file, found a FIFO"));
}

// 64-bit sizes, without the disk space: the file is a hole.
TEST(MappedFile, MoreThanFourGibibytes) {
  const std::uint64_t size = (std::uint64_t{1} << 32) + 5;
  ASSERT_TRUE(WriteFileAtomically(Path("huge"), std::string_view("start")).ok());
  if (truncate(Path("huge").c_str(), static_cast<off_t>(size)) != 0)
    GTEST_SKIP() << "no sparse files here";
  {
    const Result<MappedFile> file = MappedFile::Open(Path("huge"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->bytes().size(), size);
    EXPECT_EQ(file->bytes()[size - 1], std::byte{0});
  }
  std::filesystem::remove(Path("huge"));
}

}  // namespace
}  // namespace slimgrad
