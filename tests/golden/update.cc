// Writes the golden files anew: bazel run -c opt //tests/golden:update
//
// The difference is then the review: git diff tests/golden.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/golden/golden.h"

namespace {

bool Write(const std::string& path, const slimgrad::Result<std::string>& text) {
  if (!text.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), text.status().message().c_str());
    return false;
  }
  std::ofstream file(path, std::ios::binary);
  file << *text;
  file.close();
  if (!file) std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
  if (file) std::printf("wrote %s\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");  // set by bazel run
  if (workspace == nullptr) {
    std::fprintf(stderr, "run me with: bazel run -c opt //tests/golden:update\n");
    return 2;
  }
  const std::string folder = std::string(workspace) + "/tests/golden/";
  bool ok = Write(folder + "sizes.csv", slimgrad::SizesText());
  for (const slimgrad::Golden& golden : slimgrad::Goldens())
    ok &= Write(folder + golden.file + ".txt", slimgrad::GoldenText(golden.spec));
  return ok ? 0 : 1;
}
