#include "tests/golden/golden.h"

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compressors/api/registry.h"
#include "core/buffer.h"
#include "core/frame.h"

namespace slimgrad {
namespace {

constexpr char kNew[] =
    "No golden file yet. A new method's is written by: bazel run -c opt //tests/golden:update";

constexpr char kHowTo[] =
    "The bytes on the wire have changed. If that is meant, follow \"Versions\" in "
    "docs/wire_format.md and run: bazel run -c opt //tests/golden:update";

std::string ReadFile(const std::string& path) {
  const std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << ": " << kNew;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class GoldenFile : public testing::TestWithParam<Golden> {};

TEST_P(GoldenFile, IsWhatTheMethodSends) {
  const auto text = GoldenText(GetParam().spec);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, ReadFile("tests/golden/" + GetParam().file + ".txt")) << kHowTo;
}

INSTANTIATE_TEST_SUITE_P(Specs, GoldenFile, testing::ValuesIn(Goldens()),
                         [](const auto& test) { return test.param.file; });

TEST(Golden, SizesAreThoseOfTheTable) {
  const auto text = SizesText();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, ReadFile("tests/golden/sizes.csv")) << kHowTo;
}

// The worked example of the document, byte by byte.
TEST(WireFormat, ExampleIsReproduced) {
  const auto compressor = MakeCompressor("top_k(k=2)");
  ASSERT_TRUE(compressor.ok());
  const TensorSpec tensor = {"w", {4}};
  Scratch scratch;
  Counters counters;
  Context context;
  context.tensor = &tensor;
  context.scratch = &scratch;
  context.counters = &counters;
  context.step = 3;
  const Buffer<std::byte> memory(112);
  Payload payload(FrameBody(memory.span()));
  const std::vector<float> gradient = {0.5F, -2, 0.25F, 1};
  State state = compressor->Init(context);
  compressor->Send(0, gradient, state, context, payload);
  const auto frame = SealFrame(memory.span(), payload, {compressor->spec_hash(), 4, 3, 0});
  std::string hex;
  for (const std::byte byte : frame) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned>(byte) >> 4];
    hex += kDigits[static_cast<unsigned>(byte) & 15];
  }

  // Its lines: four spaces, an offset of four digits, bytes in groups of two digits, two spaces and
  // words.
  const std::string document = ReadFile("docs/wire_format.md");
  std::istringstream lines(document);
  std::string line, found;
  const std::regex row("    [0-9a-f]{4}  ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:  .*)?");
  std::smatch match;
  while (std::getline(lines, line))
    if (std::regex_match(line, match, row))
      for (const char c : match[1].str())
        if (c != ' ') found += c;
  EXPECT_EQ(found, hex);
}

}  // namespace
}  // namespace slimgrad
