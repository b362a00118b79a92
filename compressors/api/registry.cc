#include "compressors/api/registry.h"

#include <cstdio>
#include <map>

namespace slimgrad {
namespace {

// A local static, so that it exists whenever the first registrar runs.
std::map<std::string, Method, std::less<>>& Table() {
  static std::map<std::string, Method, std::less<>> table;
  return table;
}

}  // namespace

internal::Registrar::Registrar(const char* name, const char* file, Method method) {
  const int makers =
      (method.make != nullptr) + (method.wrap != nullptr) + (method.recode != nullptr);
  SLIMGRAD_CHECK(makers == 1 && !method.summary.empty() && !method.example.empty());
  method.name = name;
  method.file = file;
  const auto [it, fresh] = Table().try_emplace(name, std::move(method));
  if (!fresh)
    std::fprintf(stderr, "method %s: registered by %s and by %s\n", name, it->second.file.c_str(),
                 file);
  SLIMGRAD_CHECK(fresh);
}

std::vector<const Method*> Methods() {
  std::vector<const Method*> methods;
  for (const auto& [name, method] : Table()) methods.push_back(&method);
  return methods;
}

const Method* FindMethod(std::string_view name) {
  const auto it = Table().find(name);
  return it == Table().end() ? nullptr : &it->second;
}

}  // namespace slimgrad
