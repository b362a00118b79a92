// `slimgrad list`: every registered method with what it claims, as text.
#pragma once

#include <string>

namespace slimgrad::sim {

// A table of all methods, their parameters and ranges. Claims are those of each method's example
// for one 1024 x 1024 tensor. Deterministic; ends in a newline.
std::string ListText();

}  // namespace slimgrad::sim
