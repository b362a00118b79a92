#include "sim/report/format.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace slimgrad::sim::report {
namespace {

TEST(ThreeDigits, Values) {
  EXPECT_EQ(ThreeDigits(0), "0");
  EXPECT_EQ(ThreeDigits(-0.0), "0");
  EXPECT_EQ(ThreeDigits(1), "1.00");
  EXPECT_EQ(ThreeDigits(-1), "-1.00");
  EXPECT_EQ(ThreeDigits(32), "32.0");
  EXPECT_EQ(ThreeDigits(0.0123456), "0.0123");
  EXPECT_EQ(ThreeDigits(0.00123456), "0.00123");
  EXPECT_EQ(ThreeDigits(0.000123456), "1.23e-4");
  EXPECT_EQ(ThreeDigits(1e-9), "1.00e-9");
  EXPECT_EQ(ThreeDigits(1234), "1.23k");
  EXPECT_EQ(ThreeDigits(12345), "12.3k");
  EXPECT_EQ(ThreeDigits(123456), "123k");
  EXPECT_EQ(ThreeDigits(1234567), "1.23M");
  EXPECT_EQ(ThreeDigits(2.5e9), "2.50G");
  EXPECT_EQ(ThreeDigits(2.5e14), "250T");
  EXPECT_EQ(ThreeDigits(2.5e15), "2.50e15");
}

TEST(ThreeDigits, RoundsBeforeItChoosesTheForm) {
  EXPECT_EQ(ThreeDigits(999.4), "999");
  EXPECT_EQ(ThreeDigits(999.6), "1.00k");
  EXPECT_EQ(ThreeDigits(0.9999), "1.00");
  EXPECT_EQ(ThreeDigits(9.999), "10.0");
  EXPECT_EQ(ThreeDigits(0.00099999), "0.00100");
  EXPECT_EQ(ThreeDigits(999999), "1.00M");
}

TEST(ThreeDigits, NotANumber) {
  EXPECT_EQ(ThreeDigits(std::nan("")), "nan");
  EXPECT_EQ(ThreeDigits(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(ThreeDigits(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(ThreeDigits, AtMostTenCharactersAtEveryMagnitude) {
  for (int exponent = -320; exponent <= 308; ++exponent) {
    for (const double lead : {1.0, 1.2345, 9.996, -1.2345}) {
      const std::string text = ThreeDigits(lead * std::pow(10.0, exponent));
      EXPECT_LE(text.size(), 10u) << text;
    }
  }
}

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(DisplayWidth(""), 0u);
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("\u00e4\u4e2d"), 2u);
}

TEST(OneLine, TakesControlCharactersOut) {
  EXPECT_EQ(OneLine("a\nb\033[0m\x7f"), "a?b?[0m?");
  EXPECT_EQ(OneLine("\u00e4"), "\u00e4");
  EXPECT_EQ(OneLine("\u0080\u009b31m\u009f\u00a0\u0100"), "??31m?\u00a0\u0100");
  EXPECT_EQ(OneLine("cut\xC2"), "cut\xC2");
}

TEST(Shorten, KeepsBothEnds) {
  EXPECT_EQ(Shorten("0123456789", 10), "0123456789");
  EXPECT_EQ(Shorten("0123456789A", 10), "01234...9A");
  EXPECT_EQ(DisplayWidth(Shorten(std::string(99, 'x'), 33)), 33u);
}

TEST(Shorten, CutsBetweenCodePoints) {
  const std::string umlauts = "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4";
  EXPECT_EQ(Shorten(umlauts, 8), "\u00e4\u00e4\u00e4\u00e4...\u00e4");
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(Wrap("one two three", 11, "* ", "  "), "* one two\n  three\n");
  EXPECT_EQ(Wrap("unbreakably", 4, "* ", "  "), "* unbreakably\n");
  EXPECT_EQ(Wrap("", 10, "* ", "  "), "* \n");
}

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(TextTable({{"a", "bb", "c"}, {"\xC3\xA4\xC3\xB6", "1", ""}, {"x", "", ""}}),
            "a   bb  c\n"
            "\xC3\xA4\xC3\xB6  1\n"
            "x\n");
  EXPECT_EQ(TextTable({{"a\nb", "\x1b"}}), "a?b  ?\n");
  EXPECT_EQ(TextTable({}), "");
}

}  // namespace
}  // namespace slimgrad::sim::report
