// Spec strings name compressors everywhere: command line, benchmarks, frames, state files.
//
//   spec     = method { "|" method }
//   method   = name [ "(" [ argument { "," argument } ] ")" ]
//   argument = spec | name "=" ( number | spec )
//   name     = letter or "_", then letters, digits, "_"
//
// What follows "|" are recoders; an argument without a name is the compressor that a wrapper wraps.
// Blanks between tokens mean nothing. A spec has at most kMaxSpecBytes bytes, nested at most
// kMaxSpecDepth deep.
//
//   error_feedback(top_k(ratio=0.01) | delta_index | fp16_values)
//
// This header is the grammar only; registry.h gives names and parameters their meaning.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace slimgrad {

inline constexpr std::size_t kMaxSpecBytes = 4096;
inline constexpr std::size_t kMaxSpecDepth = 16;

struct SpecNode;

// A parameter's value as written. A bare word is both a choice and a method without arguments, so
// it comes as a node.
struct SpecArgument {
  std::string name;
  std::size_t name_position = 0;
  std::string value;  // as written
  std::size_t value_position = 0;
  std::vector<SpecNode> node;  // the value as a spec: one, or none when it is a number
};

struct SpecNode {
  std::string name;
  std::size_t position = 0;     // of the name, in bytes from the start of the text
  std::vector<SpecNode> inner;  // arguments without a name
  std::vector<SpecArgument> arguments;
  std::vector<SpecNode> recoders;  // after "|", in order
};

Result<SpecNode> ParseSpec(std::string_view text);

// kInvalidArgument that shows `text` with a mark under the character at `position`.
Status SpecError(std::string_view text, std::size_t position, std::string_view message);

}  // namespace slimgrad
