#include "compressors/api/registry.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace slimgrad {
namespace {

// The methods' source files, as the build lays them beside the test.
std::set<std::string> MethodFiles() {
  std::set<std::string> names;
  const std::filesystem::path folder = std::filesystem::path(std::getenv("TEST_SRCDIR")) /
                                       std::getenv("TEST_WORKSPACE") / "compressors";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cc") names.insert(entry.path().stem());
  return names;
}

// A linker that leaves out what nobody names would leave an empty list.
TEST(Registry, EveryFileRegistersTheMethodItIsNamedAfter) {
  const std::set<std::string> files = MethodFiles();
  ASSERT_GE(files.size(), 12U);
  std::set<std::string> methods;
  for (const Method* method : Methods()) {
    methods.insert(method->name);
    EXPECT_EQ(std::filesystem::path(method->file).stem(), method->name) << method->file;
  }
  EXPECT_EQ(methods, files);
}

TEST(Registry, ListsInAlphabeticalOrder) {
  const std::vector<const Method*> methods = Methods();
  EXPECT_TRUE(std::is_sorted(methods.begin(), methods.end(),
                             [](const Method* a, const Method* b) { return a->name < b->name; }));
  for (const Method* method : methods) EXPECT_EQ(FindMethod(method->name), method);
}

TEST(Registry, FindsNothingForAnUnknownName) {
  EXPECT_EQ(FindMethod("topk"), nullptr);
  EXPECT_EQ(FindMethod(""), nullptr);
}

TEST(Registry, TellsKindsApart) {
  const auto kind = [](const char* name) {
    const Method* method = FindMethod(name);
    return method == nullptr ? std::optional<Method::Kind>() : method->kind();
  };
  EXPECT_EQ(kind("top_k"), Method::Kind::kCompressor);
  EXPECT_EQ(kind("error_feedback"), Method::Kind::kWrapper);
  EXPECT_EQ(kind("delta_index"), Method::Kind::kRecoder);
  EXPECT_EQ(kind("topk"), std::nullopt);
}

Method Complete() {
  Method method;
  method.summary = "a test's";
  method.example = "none";
  method.make = [](const Arguments&) { return MakeCompressor("none"); };
  return method;
}

TEST(RegistryDeathTest, ANameIsRegisteredOnce) {
  EXPECT_DEATH(internal::Registrar("top_k", "elsewhere.cc", Complete()),
               "method top_k: registered by .*compressors/top_k.cc and by elsewhere.cc");
}

TEST(RegistryDeathTest, AMethodIsComplete) {
  Method none = Complete(), both = Complete(), silent = Complete(), shy = Complete();
  none.make = {};
  both.wrap = both.make;
  silent.summary = "";
  shy.example = "";
  for (const Method& method : {none, both, silent, shy})
    EXPECT_DEATH(internal::Registrar("new_method", "new_method.cc", method), "check failed");
}

}  // namespace
}  // namespace slimgrad
