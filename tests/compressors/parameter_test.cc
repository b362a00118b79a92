#include "compressors/api/parameter.h"

#include "gtest/gtest.h"

namespace slimgrad {
namespace {

TEST(Parameter, Domains) {
  EXPECT_EQ(Real("x").Domain(), "a number");
  EXPECT_EQ(Real("x").Above(0).AtMost(1).Domain(), "a number in (0, 1]");
  EXPECT_EQ(Real("x").AtLeast(0.5).AtMost(1).Domain(), "a number in [0.5, 1]");
  EXPECT_EQ(Real("x").Above(-1).Domain(), "a number > -1");
  EXPECT_EQ(Real("x").AtMost(3).Domain(), "a number <= 3");
  EXPECT_EQ(Integer("x").AtLeast(1).Domain(), "an integer >= 1");
  EXPECT_EQ(Choice("x", {"a", "b", "c"}).Domain(), "a or b or c");
  EXPECT_EQ(CompressorParameter("x").Domain(), "a compressor");
}

TEST(Parameter, Reals) {
  const Parameter x = Real("x").Above(0).AtMost(1);
  EXPECT_EQ(x.ParseReal("1"), 1.0);
  EXPECT_EQ(x.ParseReal("0.25"), 0.25);
  EXPECT_EQ(x.ParseReal("1e-300"), 1e-300);
  for (const char* text : {"", "0", "-0", "1.0001", "-1", "nan", "inf", "1e-400", "1e400", " 1",
                           "1 ", "+1", "0x1p-1", "1,0", "half"})
    EXPECT_FALSE(x.ParseReal(text).has_value()) << text;
  EXPECT_FALSE(Real("x").ParseReal("inf").has_value());
  EXPECT_FALSE(Real("x").ParseReal("nan").has_value());
  EXPECT_EQ(Real("x").AtLeast(2).ParseReal("2"), 2.0);
  EXPECT_FALSE(Real("x").AtLeast(2).ParseReal("1.9").has_value());
}

TEST(Parameter, Integers) {
  const Parameter k = Integer("k").AtLeast(1);
  EXPECT_EQ(k.ParseInteger("1"), 1);
  EXPECT_EQ(k.ParseInteger("9223372036854775807"), INT64_MAX);
  for (const char* text :
       {"", "0", "-1", "1.5", "1.", "1e3", "9223372036854775808", "0x1", "+1", "one"})
    EXPECT_FALSE(k.ParseInteger(text).has_value()) << text;
  EXPECT_FALSE(Integer("k").AtMost(64).ParseInteger("65").has_value());
  EXPECT_EQ(Integer("k").ParseInteger("-5"), -5);
}

TEST(Parameter, Choices) {
  const Parameter x = Choice("x", {"nearest", "stochastic"}).Default("nearest").Doc("how");
  EXPECT_TRUE(x.HasChoice("stochastic"));
  EXPECT_FALSE(x.HasChoice("near"));
  EXPECT_FALSE(x.HasChoice(""));
  EXPECT_EQ(x.default_text(), "nearest");
  EXPECT_EQ(x.doc(), "how");
}

TEST(Parameter, Defaults) {
  EXPECT_EQ(Real("x").Default(0.1).default_text(), "0.1");
  EXPECT_EQ(Integer("x").Default(4096).default_text(), "4096");
  EXPECT_EQ(Integer("k").InsteadOf("ratio").instead_of(), "ratio");
}

TEST(Arguments, HandOutWhatWasSet) {
  Arguments arguments;
  arguments.Set("real", 0.5);
  arguments.Set("integer", std::int64_t{7});
  arguments.Set("choice", std::string("nearest"));
  EXPECT_EQ(arguments.Real("real"), 0.5);
  EXPECT_EQ(arguments.Integer("integer"), 7);
  EXPECT_EQ(arguments.Size("integer"), 7U);
  EXPECT_EQ(arguments.Choice("choice"), "nearest");
  EXPECT_TRUE(arguments.Has("real"));
  EXPECT_FALSE(arguments.Has("other"));
}

TEST(ArgumentsDeathTest, RefuseWhatWasNotDeclared) {
  EXPECT_DEATH(static_cast<void>(Arguments().Real("x")), "check failed");
}

TEST(NumberText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(NumberText(1e-300), "1e-300");
}

}  // namespace
}  // namespace slimgrad
