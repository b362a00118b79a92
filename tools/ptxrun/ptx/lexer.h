// PTX text to tokens.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ptx {

struct Token {
  std::string text;
  int line;
};

// A token is a word with its dots (".reg", "add.s32", "%r1", "0f3F800000"), a quoted string, or
// one other character. The text ends at a zero byte.
std::vector<Token> Lex(const char* text, std::size_t bytes);

}  // namespace ptx
