#include "core/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slimgrad {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text, int max_depth = 16) {
  const Result<nlohmann::json> result = ParseStrictJson(text, max_depth);
  if (result.ok()) return "accepted: " + result->dump();
  EXPECT_EQ(result.status().code(), Code::kCorrupt);
  return result.status().message();
}

TEST(StrictJson, ReadsEveryKindOfValue) {
  const auto json = ParseStrictJson(
      R"( {"a": [1, -2, 0.5, 1e3, "\u00e9\n", null, true, false, {}, []], "b": 18446744073709551615} )");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(
      json->dump(),
      "{\"a\":[1,-2,0.5,1000.0,\"\u00e9\\n\",null,true,false,{},[]],\"b\":18446744073709551615}");
}

TEST(StrictJson, AKeyOnce) {
  EXPECT_EQ(ErrorOf(R"({"a": 1, "b": 2, "a": 1})"),
            "expected every key once, found \"a\" twice in one object");
  EXPECT_THAT(ErrorOf(R"({"x": {"\u0061": 1, "a": 1}})"), HasSubstr("\"a\" twice"));
  EXPECT_TRUE(ParseStrictJson(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})").ok());
}

TEST(StrictJson, DepthIsBounded) {
  EXPECT_TRUE(ParseStrictJson("[[[1]]]", 3).ok());
  EXPECT_EQ(ErrorOf("[[[[1]]]]", 3), "expected at most 3 levels of arrays and objects, found more");
  EXPECT_THAT(ErrorOf(std::string(10'000'000, '[')), HasSubstr("at most 16 levels"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("at most 16 levels"));
}

TEST(StrictJson, WhatIsNoJson) {
  for (const char* text : {"",           " ",
                           "hello",      "{",
                           "[1,]",       "{\"a\" 1}",
                           "{a: 1}",     "NaN",
                           "[Infinity]", "[1e999]",
                           "01",         "+1",
                           "1.",         "'a'",
                           "{}x",        "[1] [2]",
                           "// c\n1",    "\"\x01\"",
                           "\"\\x\"",    "\"\\ud800\"",
                           "\"\xff\"",   "\"\xc0\x80\"",
                           "tru"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("expected JSON, found a")) << text;
  }
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF{}"), "expected JSON, found a byte order mark");
  EXPECT_EQ(ErrorOf(std::string_view("{}\0{}", 5)), "expected JSON, found a NUL byte at offset 2");
}

TEST(StrictJson, ErrorsSayWhereAndStayShort) {
  EXPECT_THAT(ErrorOf("{\"a\":\n  oops}"), HasSubstr("line 2, column 3"));
  EXPECT_LT(ErrorOf("[\"" + std::string(1'000'000, 'a')).size(), 300U);
  EXPECT_LT(ErrorOf("{\"" + std::string(1'000'000, 'a') + "\":1 2}").size(), 300U);
}

TEST(StrictJson, Describe) {
  EXPECT_EQ(Describe(1.5), "1.5");
  EXPECT_EQ(Describe(nullptr), "null");
  EXPECT_EQ(Describe("sgdd"), "\"sgdd\"");
  EXPECT_EQ(Describe(nlohmann::json::array({1, 2, 3})), "an array of 3");
  EXPECT_EQ(Describe(nlohmann::json::object()), "an object");
}

TEST(StrictJson, QuotedIsSafeOnATerminal) {
  EXPECT_EQ(Quoted("w.0"), "\"w.0\"");
  EXPECT_EQ(Quoted("\x1b[31m\n\xc3\xa9"), "\"\\x1B[31m\\x0A\\xC3\\xA9\"");
  EXPECT_EQ(Quoted(std::string(100, 'a')), "\"" + std::string(64, 'a') + "...\"");
}

}  // namespace
}  // namespace slimgrad
