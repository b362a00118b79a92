#include "core/status.h"

#include <memory>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

Status Check(int value) {
  if (value < 0) return InvalidArgument("value: expected >= 0, found " + std::to_string(value));
  return {};
}

Result<int> Half(int value) {
  SLIMGRAD_RETURN_IF_ERROR(Check(value));
  if (value % 2 != 0) return Corrupt("odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  SLIMGRAD_ASSIGN_OR_RETURN(const int half, Half(value));
  SLIMGRAD_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, NumbersNeverChange) {
  // The C API hands them out.
  EXPECT_EQ(static_cast<int>(Code::kOk), 0);
  EXPECT_EQ(static_cast<int>(Code::kInvalidArgument), 1);
  EXPECT_EQ(static_cast<int>(Code::kCorrupt), 2);
  EXPECT_EQ(static_cast<int>(Code::kMismatch), 3);
  EXPECT_EQ(static_cast<int>(Code::kUnsupported), 4);
  EXPECT_EQ(static_cast<int>(Code::kPeerLost), 5);
  EXPECT_EQ(static_cast<int>(Code::kIo), 6);
  EXPECT_EQ(static_cast<int>(Code::kOutOfMemory), 7);
  EXPECT_EQ(static_cast<int>(Code::kDevice), 8);
}

TEST(Status, MakersSetTheirCode) {
  EXPECT_EQ(InvalidArgument("x").code(), Code::kInvalidArgument);
  EXPECT_EQ(Corrupt("x").code(), Code::kCorrupt);
  EXPECT_EQ(Mismatch("x").code(), Code::kMismatch);
  EXPECT_EQ(Unsupported("x").code(), Code::kUnsupported);
  EXPECT_EQ(PeerLost("x").code(), Code::kPeerLost);
  EXPECT_EQ(IoError("x").code(), Code::kIo);
  EXPECT_EQ(OutOfMemory("x").code(), Code::kOutOfMemory);
  EXPECT_EQ(DeviceError("x").code(), Code::kDevice);
  EXPECT_TRUE(Status().ok());
  EXPECT_FALSE(IoError("x").ok());
}

TEST(Status, CodesHaveNames) {
  EXPECT_EQ(CodeName(Code::kOk), "OK");
  EXPECT_EQ(CodeName(Code::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(CodeName(Code::kIo), "IO");
  EXPECT_EQ(CodeName(Code::kOutOfMemory), "OUT_OF_MEMORY");
  EXPECT_EQ(CodeName(Code::kDevice), "DEVICE");
  EXPECT_EQ(CodeName(static_cast<Code>(200)), "UNKNOWN");
}

TEST(Status, InPutsTheContextInFront) {
  const Status status = Mismatch("shape: expected 1, found 2").In("tensor 'w'").In("file");
  EXPECT_EQ(status.message(), "file: tensor 'w': shape: expected 1, found 2");
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_TRUE(Status().In("file").ok());
  EXPECT_EQ(Status().In("file").message(), "");
}

TEST(Status, OkIsNoError) { EXPECT_DEATH(Status(Code::kOk, "all is well"), "check failed"); }

TEST(Result, MacrosReturnTheFirstError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(-4).status().message(), "value: expected >= 0, found -4");
  EXPECT_EQ(Quarter(6).status().code(), Code::kCorrupt);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(Result, NoValueBehindAnError) {
  const Result<int> result = IoError("gone");
  EXPECT_FALSE(result.ok());
  EXPECT_DEATH(static_cast<void>(result.value()), "check failed");
}

TEST(Result, AnOkStatusIsNoResult) { EXPECT_DEATH(Result<int>{Status()}, "check failed"); }

}  // namespace
}  // namespace slimgrad
