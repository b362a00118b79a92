// Errors that outside data can cause travel as Status or Result<T>. The library never throws across
// its boundary.
//
//   SLIMGRAD_RETURN_IF_ERROR(Check(x));
//   SLIMGRAD_ASSIGN_OR_RETURN(Trace trace, Trace::Open(path));
//
// A message names the field, what was expected and what was found:
//
//   tensor 'w': shape: expected [2, 3], found [3, 2]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace slimgrad {

// Numbered once; the C API hands out the same numbers, so they never change.
enum class Code : std::uint8_t {
  kOk = 0,
  kInvalidArgument = 1,  // a spec string, a parameter or an option
  kCorrupt = 2,          // bytes that are damaged or not what they claim to be
  kMismatch = 3,         // two valid things that do not belong together: specs, shapes, ranks
  kUnsupported = 4,      // valid, but not something that this build or method can do
  kPeerLost = 5,         // another rank failed, left or did not answer in time
  kIo = 6,               // the operating system refused a file operation
  kOutOfMemory = 7,      // the host's or a device's memory is too small
  kDevice = 8,           // a device is not there, cannot be used, or failed at its work
};

// "OK", "INVALID_ARGUMENT", ...
std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    SLIMGRAD_CHECK(code != Code::kOk);
  }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with "context: " in front; OK stays OK.
  Status In(std::string_view context) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

Status InvalidArgument(std::string message);
Status Corrupt(std::string message);
Status Mismatch(std::string message);
Status Unsupported(std::string message);
Status PeerLost(std::string message);
Status IoError(std::string message);
Status OutOfMemory(std::string message);
Status DeviceError(std::string message);

// A value or the error that stands in its place. Reading the value of a failed result is a CHECK
// failure.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return status;`.
  Result(T value) : value_(std::move(value)) {}       // NOLINT
  Result(Status error) : status_(std::move(error)) {  // NOLINT
    SLIMGRAD_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & { return Get(); }
  const T& value() const& { return const_cast<Result*>(this)->Get(); }
  T&& value() && { return std::move(Get()); }
  T& operator*() { return Get(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &Get(); }
  const T* operator->() const { return &value(); }

 private:
  T& Get() {
    SLIMGRAD_CHECK(value_.has_value());
    return *value_;
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace slimgrad

#define SLIMGRAD_INTERNAL_CAT2(a, b) a##b
#define SLIMGRAD_INTERNAL_CAT(a, b) SLIMGRAD_INTERNAL_CAT2(a, b)

#define SLIMGRAD_RETURN_IF_ERROR(expression)                                      \
  do {                                                                            \
    if (::slimgrad::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define SLIMGRAD_ASSIGN_OR_RETURN(declaration, expression) \
  SLIMGRAD_INTERNAL_ASSIGN(SLIMGRAD_INTERNAL_CAT(result_, __LINE__), declaration, expression)
#define SLIMGRAD_INTERNAL_ASSIGN(result, declaration, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return result.status();                       \
  declaration = std::move(result).value()
