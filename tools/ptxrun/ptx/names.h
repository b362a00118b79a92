// The names that PTX gives to what types.h lists.
#pragma once

#include <optional>
#include <string>

#include "tools/ptxrun/ptx/types.h"

namespace ptx {

Type TypeNamed(const std::string& name);  // kNone when it is no type
Op OpNamed(const std::string& name);      // kUnsupported when it is unknown
Space SpaceNamed(const std::string& name);
std::optional<Compare> CompareNamed(const std::string& name);
std::optional<Rounding> RoundingNamed(const std::string& name);
std::optional<Special> SpecialNamed(const std::string& name);
std::optional<WarpMode> WarpModeNamed(const std::string& name);
std::optional<Atomic> AtomicNamed(const std::string& name);
std::optional<Mbarrier> MbarrierNamed(const std::string& name);

// A modifier that changes nothing here, or that decode.cc reads.
bool IsKnownModifier(const std::string& name);

}  // namespace ptx
