#include "core/strict_json.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace slimgrad {
namespace {

using Json = nlohmann::json;

// Builds the value event by event. The parser keeps its own stack on the heap, so depth is bounded
// for the sake of those who walk the value recursively.
class Builder final : public Json::json_sax_t {
 public:
  explicit Builder(int max_depth) : max_depth_(static_cast<std::size_t>(max_depth)) {}

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(std::int64_t value) override { return Put(value); }
  bool number_unsigned(std::uint64_t value) override { return Put(value); }
  bool number_float(double value, const std::string&) override { return Put(value); }
  bool string(std::string& value) override { return Put(std::move(value)); }
  bool binary(Json::binary_t&) override { return Fail("expected text, found a binary value"); }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    const auto [place, fresh] = open_.back()->get_ref<Json::object_t&>().emplace(name, nullptr);
    if (!fresh)
      return Fail("expected every key once, found " + Quoted(name) + " twice in one object");
    slot_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...; last read: '...'":
    // the id means nothing to a reader, and the last token can be as long as the file.
    const std::string what = error.what();
    const std::size_t start = what.find("] ");
    std::string message = what.substr(start == std::string::npos ? 0 : start + 2);
    if (const std::size_t tail = message.find("; last read"); tail != std::string::npos)
      message.resize(tail);
    if (message.size() > 160) message.resize(160);
    return Fail("expected JSON, found a " + message);
  }

  Result<Json> Take() && {
    if (!error_.empty()) return Corrupt(std::move(error_));
    return std::move(root_);
  }

 private:
  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (Json& parent = *open_.back(); parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(Json container) {
    if (open_.size() == max_depth_) {
      return Fail("expected at most " + std::to_string(max_depth_) +
                  " levels of arrays and objects, found more");
    }
    open_.push_back(Place(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  std::size_t max_depth_;
  Json root_;
  std::vector<Json*> open_;  // a parent does not grow while its child is open, so these stay valid
  Json* slot_ = nullptr;     // where the value of the last key goes
  std::string error_;
};

}  // namespace

Result<Json> ParseStrictJson(std::string_view text, int max_depth) {
  if (text.starts_with("\xEF\xBB\xBF")) return Corrupt("expected JSON, found a byte order mark");
  // The parser takes a NUL for the end of its input and would leave what follows unread.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Corrupt("expected JSON, found a NUL byte at offset " + std::to_string(nul));
  }
  Builder builder(max_depth);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).Take();
}

std::string Describe(const Json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  if (value.is_object()) return "an object";
  return value.dump();
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMax = 64;
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char c : text.substr(0, kMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      quoted += c;
    } else {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return quoted + (text.size() > kMax ? "...\"" : "\"");
}

}  // namespace slimgrad
