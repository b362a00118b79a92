#include "sim/json_fields.h"

#include <algorithm>
#include <optional>

#include "core/strict_json.h"

namespace slimgrad::sim {
namespace {

using Json = nlohmann::json;

const Json& EmptyObject() {
  static const Json object = Json::object();
  return object;
}

const Json& EmptyArray() {
  static const Json array = Json::array();
  return array;
}

bool IsFileName(std::string_view text) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= 128 && text.front() != '.' &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

bool IsPlainName(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (byte(i) < 0x20 || byte(i) == 0x7F) return false;
    // U+0080 to U+009F in UTF-8.
    if (i > 0 && byte(i - 1) == 0xC2 && byte(i) >= 0x80 && byte(i) < 0xA0) return false;
  }
  return !text.empty() && text.size() <= 256;
}

JsonFields::JsonFields(const Json& value, std::string place, Status* error,
                       std::string_view separator)
    : value_(&value), place_(std::move(place)), separator_(separator), error_(error) {
  if (value.is_object()) return;
  Fail("", "an object", Describe(value));
  value_ = &EmptyObject();
}

std::int64_t JsonFields::Count(const char* key, std::int64_t low, std::int64_t high) const {
  const std::string expected =
      "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  const Json* field = Require(key, expected);
  if (field == nullptr) return low;
  // The parser makes an integer beyond 64 bits, or with a point, a floating-point number: not a
  // count.
  if (field->is_number_unsigned() &&
      field->get<std::uint64_t>() >= static_cast<std::uint64_t>(low) &&
      field->get<std::uint64_t>() <= static_cast<std::uint64_t>(high)) {
    return field->get<std::int64_t>();
  }
  Fail(key, expected, Describe(*field));
  return low;
}

double JsonFields::Number(const char* key, const char* expected,
                          const std::function<bool(double)>& good) const {
  const Json* field = Require(key, expected);
  if (field == nullptr) return 0;
  if (field->is_number() && good(field->get<double>())) return field->get<double>();
  Fail(key, expected, Describe(*field));
  return 0;
}

bool JsonFields::Boolean(const char* key) const {
  const Json* field = Require(key, "true or false");
  if (field == nullptr) return false;
  if (field->is_boolean()) return field->get<bool>();
  Fail(key, "true or false", Describe(*field));
  return false;
}

std::string JsonFields::Name(const char* key) const {
  constexpr std::string_view kExpected = "a string of 1 to 256 bytes without control characters";
  const std::string* text = Text(key, kExpected);
  if (text == nullptr) return {};
  if (!IsPlainName(*text)) Fail(key, kExpected, Quoted(*text));
  return *text;
}

std::string JsonFields::FileName(const char* key) const {
  constexpr std::string_view kExpected =
      "a file name of 1 to 128 letters, digits, '.', '_' and '-', not starting with a dot";
  const std::string* text = Text(key, kExpected);
  if (text == nullptr) return {};
  if (!IsFileName(*text)) Fail(key, kExpected, Quoted(*text));
  return *text;
}

std::string JsonFields::Choice(const char* key, std::initializer_list<const char*> allowed) const {
  std::string expected;
  for (const char* choice : allowed) expected += (expected.empty() ? "" : " or ") + Quoted(choice);
  const std::string* text = Text(key, expected);
  if (text == nullptr) return *allowed.begin();
  if (std::find(allowed.begin(), allowed.end(), *text) != allowed.end()) return *text;
  Fail(key, expected, Quoted(*text));
  return *allowed.begin();
}

const Json& JsonFields::Array(const char* key, const char* expected) const {
  const Json* field = Require(key, expected);
  if (field == nullptr) return EmptyArray();
  if (field->is_array()) return *field;
  Fail(key, expected, Describe(*field));
  return EmptyArray();
}

JsonFields JsonFields::Object(const char* key) const {
  const Json* field = Require(key, "an object");
  return {field == nullptr ? EmptyObject() : *field, PlaceOf(key), error_};
}

void JsonFields::OnlyKeys(std::initializer_list<const char*> known) const {
  std::string expected;
  for (const char* key : known) expected += (expected.empty() ? "" : ", ") + std::string(key);
  for (const auto& [key, unused] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      Fail("", "only the keys " + expected, Quoted(key));
    }
  }
}

const Json* JsonFields::Find(const char* key) const {
  const auto field = value_->find(key);
  return field == value_->end() || field->is_null() ? nullptr : &*field;
}

void JsonFields::Fail(std::string_view key, std::string_view expected,
                      std::string_view found) const {
  if (!error_->ok()) return;
  *error_ = Corrupt(PlaceOf(key) + ": expected " + std::string(expected) + ", found " +
                    std::string(found));
}

std::string JsonFields::PlaceOf(std::string_view key) const {
  return key.empty() ? place_ : place_ + std::string(separator_) + std::string(key);
}

const Json* JsonFields::Require(const char* key, std::string_view expected) const {
  const Json* field = Find(key);
  if (field == nullptr) Fail(key, expected, value_->contains(key) ? "null" : "none");
  return field;
}

const std::string* JsonFields::Text(const char* key, std::string_view expected) const {
  const Json* field = Require(key, expected);
  if (field == nullptr) return nullptr;
  if (field->is_string()) return field->get_ptr<const std::string*>();
  Fail(key, expected, Describe(*field));
  return nullptr;
}

}  // namespace slimgrad::sim
