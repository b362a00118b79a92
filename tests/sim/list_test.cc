#include "sim/list.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compressors/api/registry.h"

namespace slimgrad::sim {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const std::string& Text() {
  static const std::string text = ListText();  // it measures every method
  return text;
}

// The line of the table, not of the details, that starts with `name`.
std::string LineOf(std::string_view name) {
  for (const std::string& line : Lines(Text()))
    if (line.starts_with(std::string(name) + " ")) return line;
  return "no line for " + std::string(name);
}

TEST(List, TheMethodsThatAreShipped) {
  for (const char* name :
       {"none", "fp16", "bf16", "int8", "top_k", "one_bit", "scaled_sign", "power_sgd",
        "error_feedback", "small_tensors", "delta_index", "fp16_values"}) {
    EXPECT_NE(FindMethod(name), nullptr) << name;
    EXPECT_THAT(LineOf(name), ::testing::StartsWith(name));
  }
}

TEST(List, EveryMethodWithEveryParameter) {
  const std::string text = Text();
  for (const Method* method : Methods()) {
    EXPECT_THAT(LineOf(method->name), HasSubstr(method->summary));
    const std::size_t at = text.find("\n\n" + method->name + ": " + method->summary + "\n");
    ASSERT_NE(at, std::string::npos) << method->name;
    const std::string details = text.substr(at + 2, text.find("\n\n", at + 2) - at - 2);
    EXPECT_THAT(details, HasSubstr("source   " + method->reference));
    EXPECT_THAT(details, HasSubstr("example  " + method->example));
    for (const Parameter& parameter : method->parameters) {
      const auto lines = Lines(details);
      const auto line = std::find_if(lines.begin(), lines.end(), [&](const std::string& l) {
        return l.starts_with("  " + parameter.name() + " ");
      });
      ASSERT_NE(line, lines.end()) << method->name << " " << parameter.name();
      EXPECT_THAT(*line, HasSubstr(parameter.Domain()));
      EXPECT_THAT(*line, HasSubstr(parameter.doc()));
      EXPECT_THAT(*line, HasSubstr(parameter.default_text()));
    }
  }
}

TEST(List, ByHand) {
  // 32 bits a value and no state; 16 bits; k = 10486 of 2^20, 8 bytes each, and 80 of headers.
  EXPECT_THAT(LineOf("none"), HasSubstr(" 32 "));
  EXPECT_THAT(LineOf("none"), HasSubstr("  mean F32  "));
  EXPECT_THAT(LineOf("none"), HasSubstr("exact"));
  EXPECT_THAT(LineOf("bf16"), HasSubstr("mean BF16"));
  EXPECT_THAT(LineOf("top_k"), HasSubstr(" 0.641 "));
  EXPECT_THAT(LineOf("top_k"), HasSubstr("delta 0.01"));
  EXPECT_THAT(LineOf("power_sgd"), HasSubstr("mean F32 + mean F32"));
  EXPECT_THAT(LineOf("error_feedback"), HasSubstr("wrapper"));
  EXPECT_THAT(LineOf("delta_index"), HasSubstr("recoder"));
}

TEST(List, ColumnsStandBelowEachOther) {
  const auto lines = Lines(Text());
  ASSERT_GT(lines.size(), Methods().size() + 3);
  const std::string& heading = lines[1];
  for (const char* name :
       {"kind", "ranks meet by", "bits", "state", "claims", "runs on", "what it"}) {
    const std::size_t column = heading.find(name);
    ASSERT_NE(column, std::string::npos) << name;
    for (std::size_t line = 3; line < Methods().size() + 3; ++line) {
      ASSERT_GT(lines[line].size(), column) << lines[line];
      EXPECT_EQ(lines[line][column - 1], ' ') << lines[line];
      EXPECT_EQ(lines[line][column - 2], ' ') << lines[line];
    }
  }
}

TEST(List, UnitsStandBelowTheirColumns) {
  const auto lines = Lines(Text());
  EXPECT_EQ(lines[2].find("/param"), lines[1].find("bits"));
  EXPECT_EQ(lines[2].find("B/param"), lines[1].find("state"));
  for (const std::string& line : lines) EXPECT_FALSE(line.ends_with(' ')) << line;
}

TEST(List, SameTextEachTime) {
  const std::string text = Text();
  EXPECT_EQ(ListText(), text);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.find_first_of("\r\t\033"), std::string::npos);
}

}  // namespace
}  // namespace slimgrad::sim
