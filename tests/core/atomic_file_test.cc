#include "core/atomic_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/mapped_file.h"

namespace slimgrad {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// An empty folder of this test's own.
class AtomicFile : public testing::Test {
 protected:
  AtomicFile()
      : root_(fs::path(testing::TempDir()) /
              (std::string("atomic_") +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directory(root_);
  }
  ~AtomicFile() override { fs::remove_all(root_); }

  // Everything below the root, relative to it: also what should not have been left behind.
  std::set<std::string> Tree() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root_))
      names.insert(entry.path().lexically_relative(root_).string());
    return names;
  }

  std::string Text(const std::string& name) const {
    const MappedFile file = MappedFile::Open(root_ / name).value();
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  fs::path root_;
};

using Names = std::set<std::string>;

// Writes fail beyond a few bytes, as on a full disk, even for root.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {100, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST_F(AtomicFile, WritesAndReplaces) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "a", std::string_view("one")).ok());
  EXPECT_EQ(Text("a"), "one");
  ASSERT_TRUE(WriteFileAtomically(root_ / "a", std::string_view("two, longer")).ok());
  EXPECT_EQ(Text("a"), "two, longer");
  EXPECT_EQ(Tree(), Names{"a"});
}

TEST_F(AtomicFile, MakesParents) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "x" / "y" / "a", std::string_view("deep")).ok());
  EXPECT_EQ(Text("x/y/a"), "deep");
}

TEST_F(AtomicFile, HasTheUsualPermissions) {
  const mode_t mask = umask(022);
  ASSERT_TRUE(WriteFileAtomically(root_ / "a", std::string_view("one")).ok());
  umask(mask);
  EXPECT_EQ(static_cast<unsigned>(fs::status(root_ / "a").permissions()), 0644U);
}

TEST_F(AtomicFile, FailureLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "a", std::string_view("old")).ok());
  {
    const FullDisk full;
    const Status status = WriteFileAtomically(root_ / "a", std::string(1000, 'x'));
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_THAT(status.message(), HasSubstr("cannot write: File too large"));
    EXPECT_FALSE(WriteFileAtomically(root_ / "p" / "q" / "a", std::string(1000, 'x')).ok());
  }
  EXPECT_EQ(Text("a"), "old");
  EXPECT_EQ(Tree(), Names{"a"});
}

TEST_F(AtomicFile, ReplacesNothingButAFile) {
  fs::create_directory(root_ / "folder");
  EXPECT_THAT(WriteFileAtomically(root_ / "folder", std::string_view("x")).message(),
              HasSubstr("expected a regular file to replace, found a folder"));
  ASSERT_EQ(mkfifo((root_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(WriteFileAtomically(root_ / "fifo", std::string_view("x")).message(),
              HasSubstr("expected a regular file to replace, found a device or pipe"));
  EXPECT_EQ(WriteFileAtomically("", std::string_view("x")).code(), Code::kIo);
  EXPECT_EQ(WriteFileAtomically(root_ / "..", std::string_view("x")).code(), Code::kIo);

  ASSERT_TRUE(WriteFileAtomically(root_ / "file", std::string_view("x")).ok());
  EXPECT_EQ(WriteFileAtomically(root_ / "file" / "a", std::string_view("x")).code(), Code::kIo);
  EXPECT_EQ(Tree(), (Names{"folder", "fifo", "file"}));
}

TEST_F(AtomicFile, SeveralFilesInANewFolder) {
  ASSERT_TRUE(WriteFilesAtomically(root_ / "deep" / "out" / "", {{"a", "1"}, {"b", "2"}}).ok());
  EXPECT_EQ(Tree(), (Names{"deep", "deep/out", "deep/out/a", "deep/out/b"}));
  EXPECT_EQ(Text("deep/out/b"), "2");
}

TEST_F(AtomicFile, SeveralFilesInAnOldFolder) {
  ASSERT_TRUE(WriteFilesAtomically(root_ / "out", {{"a", "1"}, {"b", "2"}}).ok());
  ASSERT_TRUE(WriteFilesAtomically(root_ / "out", {{"b", "3"}, {"c", "4"}}).ok());
  EXPECT_EQ(Tree(), (Names{"out", "out/a", "out/b", "out/c"}));
  EXPECT_EQ(Text("out/a") + Text("out/b") + Text("out/c"), "134");
}

TEST_F(AtomicFile, SeveralFilesOrNone) {
  const std::map<std::string, std::string> files = {{"a", "new"}, {"b", std::string(1000, 'x')}};
  {
    const FullDisk full;
    EXPECT_EQ(WriteFilesAtomically(root_ / "deep" / "out", files).code(), Code::kIo);
  }
  EXPECT_EQ(Tree(), Names{});

  ASSERT_TRUE(WriteFilesAtomically(root_ / "out", {{"a", "old"}}).ok());
  {
    const FullDisk full;
    EXPECT_EQ(WriteFilesAtomically(root_ / "out", files).code(), Code::kIo);
  }
  EXPECT_EQ(Tree(), (Names{"out", "out/a"}));
  EXPECT_EQ(Text("out/a"), "old");

  // The last of them cannot be replaced: the first is not either.
  fs::create_directory(root_ / "out" / "b");
  EXPECT_FALSE(WriteFilesAtomically(root_ / "out", {{"a", "new"}, {"b", "new"}}).ok());
  EXPECT_EQ(Text("out/a"), "old");
  EXPECT_EQ(Tree(), (Names{"out", "out/a", "out/b"}));
}

TEST_F(AtomicFile, NamesStayInTheFolder) {
  for (const char* name : {"", ".", "..", "../a", "/tmp/a", "a/b"}) {
    EXPECT_EQ(WriteFilesAtomically(root_ / "out", {{name, "x"}}).code(), Code::kIo) << name;
  }
  EXPECT_EQ(Tree(), Names{});
}

TEST_F(AtomicFile, AFileWhereTheFolderShouldBe) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "out", std::string_view("x")).ok());
  EXPECT_THAT(WriteFilesAtomically(root_ / "out", {{"a", "x"}}).message(),
              HasSubstr("expected a folder, or nothing yet, found a file"));
  EXPECT_THAT(PendingFolder::Create(root_ / "out").status().message(),
              HasSubstr("expected a new or empty folder, found a file"));
  EXPECT_EQ(Text("out"), "x");
}

TEST_F(AtomicFile, PendingFolderAppearsOnCommit) {
  {
    Result<PendingFolder> pending = PendingFolder::Create(root_ / "p" / "trace");
    ASSERT_TRUE(pending.ok()) << pending.status().message();
    ASSERT_TRUE(WriteFileAtomically(pending->path() / "steps" / "0", std::string_view("x")).ok());
    EXPECT_FALSE(fs::exists(root_ / "p" / "trace"));
    PendingFolder moved = std::move(pending).value();
    ASSERT_TRUE(moved.Commit().ok());
  }
  EXPECT_EQ(Tree(), (Names{"p", "p/trace", "p/trace/steps", "p/trace/steps/0"}));
}

TEST_F(AtomicFile, PendingFolderIsForgottenWithoutCommit) {
  {
    PendingFolder pending = PendingFolder::Create(root_ / "p" / "q" / "trace").value();
    ASSERT_TRUE(WriteFileAtomically(pending.path() / "a", std::string_view("x")).ok());
  }
  EXPECT_EQ(Tree(), Names{});
}

TEST_F(AtomicFile, PendingFolderReplacesOnlyAnEmptyOne) {
  fs::create_directory(root_ / "trace");
  PendingFolder first = PendingFolder::Create(root_ / "trace").value();
  PendingFolder second = PendingFolder::Create(root_ / "trace").value();
  ASSERT_TRUE(WriteFileAtomically(first.path() / "first", std::string_view("x")).ok());
  ASSERT_TRUE(WriteFileAtomically(second.path() / "second", std::string_view("x")).ok());
  EXPECT_TRUE(first.Commit().ok());
  EXPECT_EQ(second.Commit().code(), Code::kIo);
  EXPECT_THAT(PendingFolder::Create(root_ / "trace").status().message(),
              HasSubstr("found one that is not empty"));
  EXPECT_TRUE(fs::exists(root_ / "trace" / "first"));
  EXPECT_FALSE(fs::exists(root_ / "trace" / "second"));
}

}  // namespace
}  // namespace slimgrad
