// Reads the fields of one JSON object, each with its type and range. The first error of a document
// is kept and the rest of the reading runs on with defaults, so that the code that reads is a list
// of fields:
//
//   Status error;
//   const JsonFields fields(json, "trace.json: optimizer", &error);
//   config.momentum = fields.Number("momentum", "a number in [0, 1)",
//                                   [](double m) { return m >= 0 && m < 1; });
//   SLIMGRAD_RETURN_IF_ERROR(error);
//
// An optional field may be absent or null. Errors are kCorrupt: "trace.json: optimizer.momentum:
// expected a number in [0, 1), found 1.5".
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/status.h"

namespace slimgrad::sim {

class JsonFields {
 public:
  using Json = nlohmann::json;

  // Borrows `value` and `error`. `place` is what errors begin with; keys are added after
  // `separator`.
  JsonFields(const Json& value, std::string place, Status* error, std::string_view separator = ".");

  bool Has(const char* key) const { return Find(key) != nullptr; }

  std::int64_t Count(const char* key, std::int64_t low, std::int64_t high) const;
  double Number(const char* key, const char* expected,
                const std::function<bool(double)>& good) const;
  bool Boolean(const char* key) const;

  // 1 to 256 bytes without control characters.
  std::string Name(const char* key) const;

  // A plain name inside a folder: 1 to 128 bytes of A-Z a-z 0-9 . _ -, not starting with a dot.
  std::string FileName(const char* key) const;

  // One of `allowed`, else the first.
  std::string Choice(const char* key, std::initializer_list<const char*> allowed) const;

  // An array (empty after an error), an object.
  const Json& Array(const char* key, const char* expected) const;
  JsonFields Object(const char* key) const;

  // Refuses keys that are not among `known`: where an unknown one could change what the weights
  // become.
  void OnlyKeys(std::initializer_list<const char*> known) const;

  // Null when absent or null.
  const Json* Find(const char* key) const;
  const Json& json() const { return *value_; }

  // Keeps this error unless there is one already. An empty key stands for the object itself.
  void Fail(std::string_view key, std::string_view expected, std::string_view found) const;

  // "trace.json: optimizer.momentum"
  std::string PlaceOf(std::string_view key) const;

 private:
  // Null, and an error, unless the field is there.
  const Json* Require(const char* key, std::string_view expected) const;
  const std::string* Text(const char* key, std::string_view expected) const;

  const Json* value_;
  std::string place_;
  std::string_view separator_;
  Status* error_;
};

// 1 to 256 bytes without control characters.
bool IsPlainName(std::string_view text);

}  // namespace slimgrad::sim
