// What a file or folder of this project holds, as text for a person: `slimgrad inspect`.
#pragma once

#include <filesystem>
#include <string>

#include "core/status.h"

namespace slimgrad::sim {

// Describes a trace (a folder; every step file is read and checked), a file of payload frames or a
// state file; told apart by their contents. Errors are those of the readers, and kUnsupported, with
// what was found, for anything else. Lines end in '\n'; text from the file has its control
// characters replaced. Deterministic.
Result<std::string> Inspect(const std::filesystem::path& path);

}  // namespace slimgrad::sim
