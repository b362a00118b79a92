// The list of specs against the registry, and every method's own example.
#include <set>

#include "compressors/api/spec.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

// The names of all methods in a spec's tree.
void CollectNames(const SpecNode& node, std::set<std::string>& names) {
  names.insert(node.name);
  for (const SpecNode& inner : node.inner) CollectNames(inner, names);
  for (const SpecNode& recoder : node.recoders) CollectNames(recoder, names);
  for (const SpecArgument& argument : node.arguments)
    for (const SpecNode& value : argument.node) CollectNames(value, names);
}

TEST(Methods, EveryOneIsInTheList) {
  std::set<std::string> listed;
  for (const Spec& spec : kSpecs) {
    const Result<SpecNode> node = ParseSpec(spec.text);
    ASSERT_TRUE(node.ok()) << node.status().message();
    CollectNames(*node, listed);
  }
  ASSERT_GE(Methods().size(), 12U);
  for (const Method* method : Methods())
    EXPECT_TRUE(listed.contains(method->name))
        << method->name << " has no line in tests/conformance/specs.h";
}

// Canonical text is a fixed point, and the hash goes with it.
void ExpectCanonical(const std::string& text) {
  SCOPED_TRACE(text);
  const Result<Compressor> made = MakeCompressor(text);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Result<Compressor> again = MakeCompressor(made->spec());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->spec(), made->spec());
  EXPECT_EQ(again->spec_hash(), made->spec_hash());
  EXPECT_EQ(made->spec().find_first_of(" \t\n"), std::string::npos);
}

TEST(Methods, ExamplesAreCanonicalOnceMade) {
  for (const Method* method : Methods()) ExpectCanonical(method->example);
}

TEST(Methods, ExamplesShowTheMethod) {
  for (const Method* method : Methods())
    EXPECT_NE(method->example.find(method->name), std::string::npos) << method->name;
}

TEST(Methods, DocumentEveryParameter) {
  for (const Method* method : Methods()) {
    EXPECT_FALSE(method->reference.empty()) << method->name;
    for (const Parameter& parameter : method->parameters)
      EXPECT_FALSE(parameter.doc().empty()) << method->name << " " << parameter.name();
  }
}

class CanonicalText : public ForEverySpec {};

TEST_P(CanonicalText, IsAFixedPoint) { ExpectCanonical(spec()); }

SLIMGRAD_FOR_EVERY_SPEC(CanonicalText);

}  // namespace
}  // namespace slimgrad::conformance
