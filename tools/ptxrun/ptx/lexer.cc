// The lexer: one pass, no table.
#include "tools/ptxrun/ptx/lexer.h"

#include <cctype>

namespace ptx {
namespace {

class Lexer {
 public:
  Lexer(const char* text, std::size_t bytes) : text_(text), bytes_(bytes) {}

  std::vector<Token> Run() {
    while (at_ < bytes_ && text_[at_]) Step();
    return std::move(tokens_);
  }

 private:
  static bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
           c == '%';
  }
  char Peek(std::size_t k) const { return at_ + k < bytes_ ? text_[at_ + k] : '\0'; }

  void Step() {
    const char c = text_[at_];
    if (IsSpace(c)) {
      if (c == '\n') line_++;
      at_++;
    } else if (c == '/' && Peek(1) == '/') {
      while (at_ < bytes_ && text_[at_] != '\n') at_++;
    } else if (c == '/' && Peek(1) == '*') {
      Comment();
    } else if (c == '"') {
      std::size_t end = at_ + 1;
      while (end < bytes_ && text_[end] != '"') end++;
      Emit(end + 1);
    } else if (IsWord(c)) {
      Emit(WordEnd());
    } else {
      Emit(at_ + 1);
    }
  }

  void Comment() {
    at_ += 2;
    while (at_ + 1 < bytes_ && !(text_[at_] == '*' && text_[at_ + 1] == '/')) {
      if (text_[at_] == '\n') line_++;
      at_++;
    }
    at_ += 2;
  }

  // A word may hold "::", as in "shared::cta"; a single colon ends it, since it makes a label.
  std::size_t WordEnd() const {
    std::size_t end = at_;
    while (end < bytes_) {
      if (IsWord(text_[end]))
        end++;
      else if (text_[end] == ':' && end + 1 < bytes_ && text_[end + 1] == ':')
        end += 2;
      else
        break;
    }
    return end;
  }

  void Emit(std::size_t end) {
    tokens_.push_back({std::string(text_ + at_, end - at_), line_});
    at_ = end;
  }

  const char* text_;
  std::size_t bytes_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Lex(const char* text, std::size_t bytes) { return Lexer(text, bytes).Run(); }

}  // namespace ptx
