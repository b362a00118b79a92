// Loading: picks the PTX in a program's fat binary, parses it, gives its variables memory, and
// notes which of the host's addresses stand for which kernel and variable.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tools/ptxrun/machine/lower.h"
#include "tools/ptxrun/ptx/module.h"
#include "tools/ptxrun/ptx/parser.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

// What nvcc's start-up code hands over.
struct FatBinaryWrapper {
  std::int32_t magic;
  std::int32_t version;
  const std::uint8_t* data;
  void* unused;
};

// At the start of the data; entries follow.
struct FatBinaryHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t entries_bytes;
};

// Its payload follows the header; more fields than these are in it.
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t flags;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
};
constexpr std::uint16_t kPtxEntry = 1;

template <class T>
T ReadAt(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

struct Ptx {
  std::string_view text;
  int sm = 0;
};

Ptx ReadEntry(const std::uint8_t* payload, std::size_t bytes) {
  const std::string_view all(reinterpret_cast<const char*>(payload), bytes);
  // Any header before it differs by version of nvcc.
  const std::size_t start = all.find(".version");
  if (start == std::string_view::npos) {
    Complain("compressed PTX: build with nvcc --compress-mode=none");
    Quit(kExitCompressedPtx);
  }
  Ptx ptx;
  ptx.text = all.substr(start);
  ptx.text = ptx.text.substr(0, ptx.text.find('\0'));
  constexpr std::string_view kTarget = ".target sm_";
  const std::size_t target = ptx.text.find(kTarget);
  if (target != std::string_view::npos)
    ptx.sm = std::atoi(ptx.text.data() + target + kTarget.size());
  return ptx;
}

// The newest that PTXRUN_SM allows; with sm 0 there is none.
Ptx PickPtx(const FatBinaryWrapper& wrapper) {
  const int most = EnvironmentNumber("PTXRUN_SM", 9999);
  const auto header = ReadAt<FatBinaryHeader>(wrapper.data);
  const std::uint8_t* at = wrapper.data + header.header_bytes;
  const std::uint8_t* const end = at + header.entries_bytes;
  Ptx best;
  while (at < end) {
    const auto entry = ReadAt<EntryHeader>(at);
    at += entry.header_bytes;
    if (entry.kind == kPtxEntry) {
      const Ptx ptx = ReadEntry(at, entry.payload_bytes);
      if (ptx.sm <= most && ptx.sm > best.sm) best = ptx;
    }
    at += entry.payload_bytes;
  }
  return best;
}

constexpr std::uint64_t kSharedAlignment = 128;

// An entry's own shared variables come after the module's.
void PlaceSharedVariables(ptx::Module& module) {
  const std::uint64_t base = ptx::RoundUp(module.shared_bytes, kSharedAlignment);
  for (const auto& symbol : module.symbols) {
    if (symbol->space == ptx::Space::kShared && symbol->offset >= ptx::kEntryShared)
      symbol->offset = symbol->offset % ptx::kEntryShared + base;
  }
  for (const auto& [name, function] : module.functions) {
    const bool own = function->shared_bytes != 0;
    function->static_shared_bytes = own ? base + function->shared_bytes : module.shared_bytes;
  }
}

// One stretch of memory for all devices' copies of a variable, with space between them.
void PlaceVariable(ptx::Symbol& variable) {
  constexpr std::uint64_t kAlignment = 256;
  variable.stride = ptx::RoundUp(variable.size + kAlignment, kAlignment);
  const std::size_t bytes = variable.stride * static_cast<std::size_t>(DeviceCount());
  variable.host = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, bytes));
  std::memset(variable.host, 0, bytes);
  for (int device = 0; device < DeviceCount(); ++device) {
    std::uint8_t* copy = variable.host + static_cast<std::size_t>(device) * variable.stride;
    if (!variable.init.empty())
      std::memcpy(copy, variable.init.data(),
                  std::min<std::size_t>(variable.size, variable.init.size()));
    ptx::memory_map.Add(copy, variable.size, "module", device);
  }
}

// What a name in an initialiser stands for on a device.
std::uint64_t AddressOf(ptx::Module& module, const std::string& name, int device) {
  const auto variable = module.globals.find(name);
  if (variable != module.globals.end())
    return reinterpret_cast<std::uint64_t>(variable->second->host) +
           static_cast<std::uint64_t>(device) * variable->second->stride;
  const auto function = module.functions.find(name);
  if (function == module.functions.end())
    throw std::runtime_error("unresolved name " + name + " in an initialiser");
  return reinterpret_cast<std::uint64_t>(function->second.get());
}

// Adds addresses to the initial values that hold them, once every variable has one.
void Relocate(ptx::Module& module, const ptx::Symbol& variable) {
  for (const auto& [offset, name] : variable.relocations) {
    for (int device = 0; device < DeviceCount(); ++device) {
      std::uint8_t* at =
          variable.host + static_cast<std::size_t>(device) * variable.stride + offset;
      const std::uint64_t value = ReadAt<std::uint64_t>(at) + AddressOf(module, name, device);
      std::memcpy(at, &value, sizeof value);
    }
  }
}

void LinkModule(ptx::Module& module) {
  for (const auto& [name, function] : module.functions) {
    module.has_local |= function->local_bytes > 0;
    ptx::functions_by_address[reinterpret_cast<std::uint64_t>(function.get())] = function.get();
  }
  PlaceSharedVariables(module);
  for (const auto& [name, function] : module.functions) {
    if (function->defined) ptx::Lower(*function);
  }
  for (const auto& symbol : module.symbols) {
    if (symbol->space == ptx::Space::kGlobal || symbol->space == ptx::Space::kConst)
      PlaceVariable(*symbol);
  }
  for (const auto& symbol : module.symbols) Relocate(module, *symbol);
}

// False where the fat binary has no PTX for this machine.
bool LoadModule(const FatBinaryWrapper& wrapper, ptx::Module& module) {
  const Ptx ptx = PickPtx(wrapper);
  if (ptx.sm == 0) {
    Complain(
        "a fat binary holds no PTX, or none that PTXRUN_SM allows (build with -gencode "
        "arch=compute_75,code=compute_75)");
    return false;
  }
  try {
    ptx::ParseModule(ptx.text.data(), ptx.text.size(), module);
    LinkModule(module);
  } catch (const std::exception& error) {
    Complain("parse error: %s", error.what());
    Quit(kExitUnreadablePtx);
  }
  return true;
}

// nvcc's handle of a fat binary.
ptx::Module& FromHandle(void** handle) { return *reinterpret_cast<ptx::Module*>(handle); }

}  // namespace
}  // namespace ptxrun

using ptxrun::TheProcess;

extern "C" {

// The names that nvcc's code calls.
void** __cudaRegisterFatBinary(void* wrapper) {
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  auto module = std::make_unique<ptx::Module>();
  if (ptxrun::LoadModule(*static_cast<ptxrun::FatBinaryWrapper*>(wrapper), *module))
    process.sm = module->sm;
  process.modules.push_back(std::move(module));
  return reinterpret_cast<void**>(process.modules.back().get());
}

void __cudaRegisterFatBinaryEnd(void**) {}

// Destructors of the program may still launch.
void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const auto& functions = ptxrun::FromHandle(handle).functions;
  const auto found = functions.find(name);
  if (found != functions.end()) process.kernels[stub] = found->second.get();
}

void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int, std::size_t, int,
                       int) {
  auto& process = TheProcess();
  const std::lock_guard lock(process.mutex);
  const auto& variables = ptxrun::FromHandle(handle).globals;
  const auto found = variables.find(name);
  if (found != variables.end()) process.variables[shadow] = found->second;
}

}  // extern "C"
