// Golden wire bytes: what each method sends for a small fixed gradient, as text, and how large the
// payloads of larger ones are. A change of either is a change of wire format: see
// docs/wire_format.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace slimgrad {

struct Golden {
  std::string file;  // in tests/golden, without ".txt"
  std::string spec;
};

// Between them the specs use every method; one that no chosen spec uses comes with its example.
std::vector<Golden> Goldens();

// The text of a golden file: two steps of `spec` on one rank, every round as hexadecimal.
Result<std::string> GoldenText(std::string_view spec);

// The text of sizes.csv: payload bytes of every method's example and a few nests, for several
// tensors.
Result<std::string> SizesText();

}  // namespace slimgrad
