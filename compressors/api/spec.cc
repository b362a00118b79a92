#include "compressors/api/spec.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace slimgrad {
namespace {

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool IsNumberChar(char c) { return IsNameChar(c) || c == '.' || c == '+' || c == '-'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<SpecNode> Whole() {
    SLIMGRAD_ASSIGN_OR_RETURN(SpecNode node, Spec(0));
    SkipBlanks();
    if (at_ != text_.size())
      return Error(at_, fmt::format("expected '|' or the end, found {}", Found()));
    return node;
  }

 private:
  Result<SpecNode> Spec(std::size_t depth) {
    if (depth == kMaxSpecDepth)
      return Error(at_, fmt::format("nested more than {} deep", kMaxSpecDepth));
    SLIMGRAD_ASSIGN_OR_RETURN(SpecNode node, Method(depth));
    while (Eat('|')) {
      SLIMGRAD_ASSIGN_OR_RETURN(SpecNode recoder, Method(depth));
      node.recoders.push_back(std::move(recoder));
    }
    return node;
  }

  Result<SpecNode> Method(std::size_t depth) {
    SpecNode node;
    SLIMGRAD_ASSIGN_OR_RETURN(node.name, Name("a method's name", &node.position));
    if (!Eat('(') || Eat(')')) return node;
    do {
      SLIMGRAD_RETURN_IF_ERROR(Argument(depth, node));
    } while (Eat(','));
    if (!Eat(')')) return Error(at_, fmt::format("expected ',' or ')', found {}", Found()));
    return node;
  }

  Status Argument(std::size_t depth, SpecNode& node) {
    SkipBlanks();
    const std::size_t begin = at_;
    SpecArgument argument;
    SLIMGRAD_ASSIGN_OR_RETURN(argument.name,
                              Name("a parameter or a compressor", &argument.name_position));
    if (!Eat('=')) {  // no parameter after all: a compressor
      at_ = begin;
      SLIMGRAD_ASSIGN_OR_RETURN(SpecNode inner, Spec(depth + 1));
      node.inner.push_back(std::move(inner));
      return {};
    }
    SkipBlanks();
    argument.value_position = at_;
    if (at_ < text_.size() && IsNameStart(text_[at_])) {
      SLIMGRAD_ASSIGN_OR_RETURN(SpecNode value, Spec(depth + 1));
      argument.node.push_back(std::move(value));
    } else {
      while (at_ < text_.size() && IsNumberChar(text_[at_])) ++at_;
      if (at_ == argument.value_position)
        return Error(at_, fmt::format("expected a value, found {}", Found()));
    }
    std::size_t end = at_;  // a spec has eaten the blanks behind it
    while (IsBlank(text_[end - 1])) --end;
    argument.value = text_.substr(argument.value_position, end - argument.value_position);
    node.arguments.push_back(std::move(argument));
    return {};
  }

  Result<std::string> Name(std::string_view expected, std::size_t* position) {
    SkipBlanks();
    *position = at_;
    if (at_ == text_.size() || !IsNameStart(text_[at_]))
      return Error(at_, fmt::format("expected {}, found {}", expected, Found()));
    while (at_ < text_.size() && IsNameChar(text_[at_])) ++at_;
    return std::string(text_.substr(*position, at_ - *position));
  }

  void SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
  }
  bool Eat(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Found() const {
    if (at_ == text_.size()) return "the end";
    const char c = text_[at_];
    if (std::isprint(static_cast<unsigned char>(c))) return fmt::format("'{}'", c);
    return fmt::format("byte {:#04x}", static_cast<unsigned char>(c));
  }
  Status Error(std::size_t position, std::string_view message) const {
    return SpecError(text_, position, message);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<SpecNode> ParseSpec(std::string_view text) {
  if (text.size() > kMaxSpecBytes)
    return InvalidArgument(
        fmt::format("spec: expected at most {} bytes, found {}", kMaxSpecBytes, text.size()));
  return Parser(text).Whole();
}

Status SpecError(std::string_view text, std::size_t position, std::string_view message) {
  // Control characters would move the mark, and bytes outside ASCII might be half of a character.
  std::string shown(text);
  for (char& c : shown)
    if (!std::isprint(static_cast<unsigned char>(c))) c = '?';
  constexpr std::size_t kContext = 60;  // a long spec is shown around the place
  const std::size_t begin = position > kContext ? position - kContext : 0;
  return InvalidArgument(fmt::format("spec, character {}: {}\n    {}\n    {:>{}}", position + 1,
                                     message, shown.substr(begin, 2 * kContext), '^',
                                     position - begin + 1));
}

}  // namespace slimgrad
