#include "compressors/api/spec.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

#include "compressors/api/registry.h"

namespace slimgrad {
namespace {

std::string ErrorOf(std::string_view text) {
  const Result<SpecNode> node = ParseSpec(text);
  EXPECT_FALSE(node.ok()) << text;
  if (node.ok()) return "";
  EXPECT_EQ(node.status().code(), Code::kInvalidArgument);
  return node.status().message();
}

SpecNode Parsed(std::string_view text) {
  const Result<SpecNode> node = ParseSpec(text);
  EXPECT_TRUE(node.ok()) << node.status().message();
  return node.ok() ? *node : SpecNode{};
}

TEST(Spec, AName) {
  const SpecNode node = Parsed("top_k");
  EXPECT_EQ(node.name, "top_k");
  EXPECT_EQ(node.position, 0U);
  EXPECT_TRUE(node.inner.empty() && node.arguments.empty() && node.recoders.empty());
  EXPECT_EQ(Parsed("_a9()").name, "_a9");
}

TEST(Spec, Everything) {
  const SpecNode node =
      Parsed(" wrap( top_k(ratio = 0.01) | delta | fp16 ,\tn=-1e-3, use=none|x )\n");
  EXPECT_EQ(node.name, "wrap");
  EXPECT_EQ(node.position, 1U);
  ASSERT_EQ(node.inner.size(), 1U);
  const SpecNode& inner = node.inner[0];
  EXPECT_EQ(inner.name, "top_k");
  EXPECT_EQ(inner.position, 7U);
  ASSERT_EQ(inner.arguments.size(), 1U);
  EXPECT_EQ(inner.arguments[0].name, "ratio");
  EXPECT_EQ(inner.arguments[0].name_position, 13U);
  EXPECT_EQ(inner.arguments[0].value, "0.01");
  EXPECT_EQ(inner.arguments[0].value_position, 21U);
  EXPECT_TRUE(inner.arguments[0].node.empty());
  ASSERT_EQ(inner.recoders.size(), 2U);
  EXPECT_EQ(inner.recoders[0].name, "delta");
  EXPECT_EQ(inner.recoders[1].name, "fp16");
  ASSERT_EQ(node.arguments.size(), 2U);
  EXPECT_EQ(node.arguments[0].value, "-1e-3");
  ASSERT_EQ(node.arguments[1].node.size(), 1U);
  EXPECT_EQ(node.arguments[1].node[0].name, "none");
  EXPECT_EQ(node.arguments[1].node[0].recoders.size(), 1U);
}

TEST(Spec, RecodersKeepTheirArguments) {
  const SpecNode node = Parsed("a|b(x=1)|c(y=2,z=w)");
  ASSERT_EQ(node.recoders.size(), 2U);
  EXPECT_EQ(node.recoders[0].arguments[0].value, "1");
  EXPECT_EQ(node.recoders[1].arguments[1].value, "w");
}

struct BadSpec {
  const char* text;
  const char* message;
};

constexpr BadSpec kBad[] = {
    {"", "spec, character 1: expected a method's name, found the end\n    \n    ^"},
    {"  ", "spec, character 3: expected a method's name, found the end\n      \n      ^"},
    {"9a", "spec, character 1: expected a method's name, found '9'\n    9a\n    ^"},
    {"a b", "spec, character 3: expected '|' or the end, found 'b'\n    a b\n      ^"},
    {"a)", "spec, character 2: expected '|' or the end, found ')'\n    a)\n     ^"},
    {"a(",
     "spec, character 3: expected a parameter or a compressor, found the end\n    a(\n      ^"},
    {"a(b", "spec, character 4: expected ',' or ')', found the end\n    a(b\n       ^"},
    {"a(b=", "spec, character 5: expected a value, found the end\n    a(b=\n        ^"},
    {"a(b=)", "spec, character 5: expected a value, found ')'\n    a(b=)\n        ^"},
    {"a(b=1", "spec, character 6: expected ',' or ')', found the end\n    a(b=1\n         ^"},
    {"a(b=1;", "spec, character 6: expected ',' or ')', found ';'\n    a(b=1;\n         ^"},
    {"a(,)",
     "spec, character 3: expected a parameter or a compressor, found ','\n    a(,)\n      ^"},
    {"a(b,)",
     "spec, character 5: expected a parameter or a compressor, found ')'\n    a(b,)\n        ^"},
    {"a|", "spec, character 3: expected a method's name, found the end\n    a|\n      ^"},
    {"|a", "spec, character 1: expected a method's name, found '|'\n    |a\n    ^"},
    {"a(b=1 2)", "spec, character 7: expected ',' or ')', found '2'\n    a(b=1 2)\n          ^"},
    {"a(\x01)",
     "spec, character 3: expected a parameter or a compressor, found byte 0x01\n"
     "    a(?)\n      ^"},
    {"a\xff", "spec, character 2: expected '|' or the end, found byte 0xff\n    a?\n     ^"},
};

TEST(Spec, ErrorsPointAtTheCharacter) {
  for (const BadSpec& bad : kBad) EXPECT_EQ(ErrorOf(bad.text), bad.message);
}

std::string Nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 1; i < depth; ++i) text += "a(";
  text += "a";
  text.append(depth - 1, ')');
  return text;
}

TEST(Spec, NestingHasALimit) {
  EXPECT_TRUE(ParseSpec(Nested(kMaxSpecDepth)).ok());
  const std::string message = ErrorOf(Nested(kMaxSpecDepth + 1));
  EXPECT_TRUE(message.starts_with("spec, character 33: nested more than 16 deep\n")) << message;
  // Values nest, too.
  std::string values;
  for (int i = 0; i < 20; ++i) values += "a(b=";
  EXPECT_NE(ErrorOf(values).find("nested more than 16 deep"), std::string::npos);
}

TEST(Spec, LengthHasALimit) {
  EXPECT_TRUE(ParseSpec(std::string(kMaxSpecBytes, 'a')).ok());
  EXPECT_EQ(ErrorOf(std::string(kMaxSpecBytes + 1, 'a')),
            "spec: expected at most 4096 bytes, found 4097");
}

TEST(Spec, LongTextsAreShownAroundThePlace) {
  const std::string message = ErrorOf(std::string(200, 'a') + "!" + std::string(200, 'b'));
  EXPECT_EQ(message, "spec, character 201: expected '|' or the end, found '!'\n    " +
                         std::string(60, 'a') + "!" + std::string(59, 'b') + "\n    " +
                         std::string(60, ' ') + "^");
}

// Whatever the bytes are: a tree or an error that is printable.
TEST(Spec, HostileBytes) {
  std::mt19937 random(3);
  constexpr std::string_view kAlphabet = "ab_1.=|(),-+ \t\n\0\x7f\x80\xff";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random() % 40; i > 0; --i)
      text += round % 2 == 0 ? kAlphabet[random() % kAlphabet.size()] : static_cast<char>(random());
    const Result<Compressor> made = MakeCompressor(text);
    if (made.ok()) continue;
    for (char c : made.status().message())
      ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
  }
}

}  // namespace
}  // namespace slimgrad
