// From spec text to a compressor: names, canonical form, hashes and every refusal, word for word.
#include <string>

#include "gtest/gtest.h"

#include "compressors/api/registry.h"
#include "compressors/api/spec.h"

namespace slimgrad {
namespace {

std::string ErrorOf(std::string_view spec) {
  const Result<Compressor> made = MakeCompressor(spec);
  EXPECT_FALSE(made.ok()) << spec;
  if (made.ok()) return "";
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  return made.status().message();
}

std::string Canonical(std::string_view spec) {
  const Result<Compressor> made = MakeCompressor(spec);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? made->spec() : "";
}

TEST(Make, CanonicalText) {
  EXPECT_EQ(Canonical(" top_k "), "top_k(ratio=0.01)");
  EXPECT_EQ(Canonical("top_k(ratio=0.0100)"), "top_k(ratio=0.01)");
  EXPECT_EQ(Canonical("top_k(ratio=1e-2)"), "top_k(ratio=0.01)");
  EXPECT_EQ(Canonical("top_k(k=007)"), "top_k(k=7)");
  EXPECT_EQ(Canonical("none()"), "none");
  EXPECT_EQ(Canonical("fp16"), "fp16(overflow=saturate)");
  EXPECT_EQ(Canonical("int8(rounding=stochastic)"), "int8(block=256,rounding=stochastic)");
  EXPECT_EQ(Canonical("int8 ( rounding = nearest , block = 8 )"), "int8(block=8,rounding=nearest)");
  EXPECT_EQ(Canonical("error_feedback( top_k | delta_index | fp16_values )"),
            "error_feedback(top_k(ratio=0.01)|delta_index|fp16_values)");
  EXPECT_EQ(Canonical("small_tensors(use=top_k|delta_index,one_bit)"),
            "small_tensors(one_bit(block=4096),below=1024,use=top_k(ratio=0.01)|delta_index)");
  EXPECT_EQ(Canonical("small_tensors(none)"), "small_tensors(none,below=1024,use=none)");
}

TEST(Make, ShortestNumbersRoundTrip) {
  for (const char* ratio : {"0.1", "0.3333333333333333", "1e-300", "5e-324", "0.7000000000000001"})
    EXPECT_EQ(Canonical(std::string("top_k(ratio=") + ratio + ")"),
              std::string("top_k(ratio=") + ratio + ")");
}

// The hash is in frames and state files: it never changes. XXH3-64 of the canonical text.
TEST(Make, HashesArePinned) {
  const auto hash = [](const char* spec) { return MakeCompressor(spec)->spec_hash(); };
  EXPECT_EQ(hash("none"), 0x3356b483afc5064eU);
  EXPECT_EQ(hash("error_feedback(top_k|delta_index)"), 0xdad4ed8d300c5516U);
  EXPECT_EQ(hash("top_k(ratio=0.010)"), hash(" top_k"));
  EXPECT_NE(hash("top_k(ratio=0.01)"), hash("top_k(ratio=0.02)"));
}

struct BadSpec {
  const char* text;
  const char* message;
};

constexpr BadSpec kBad[] = {
    {"topk", "spec, character 1: unknown method 'topk'; there are {methods}\n    topk\n    ^"},
    {"top_k(rate=1)",
     "spec, character 7: top_k has no parameter 'rate'; it has ratio, k\n    top_k(rate=1)\n       "
     "   ^"},
    {"none(x=1)",
     "spec, character 6: none has no parameters, found 'x'\n    none(x=1)\n         ^"},
    {"top_k(k=1,k=2)",
     "spec, character 11: k of top_k is given twice\n    top_k(k=1,k=2)\n              ^"},
    {"top_k(k=1,ratio=0.1)",
     "spec, character 1: top_k: give k or ratio, not both\n    top_k(k=1,ratio=0.1)\n    ^"},
    {"top_k(none)",
     "spec, character 7: top_k wraps no compressor, found 1\n    top_k(none)\n          ^"},
    {"error_feedback",
     "spec, character 1: error_feedback wraps one compressor, as in "
     "error_feedback(top_k(ratio=0.01)|delta_index); found 0\n    error_feedback\n    ^"},
    {"error_feedback(none,none)",
     "spec, character 21: error_feedback wraps one compressor, as in "
     "error_feedback(top_k(ratio=0.01)|delta_index); found 2\n"
     "    error_feedback(none,none)\n                        ^"},
    {"error_feedback(error_feedback(none))",
     "spec, character 1: error_feedback: expected no other one within, found error_feedback(none)\n"
     "    error_feedback(error_feedback(none))\n    ^"},
    {"error_feedback(small_tensors(none,use=error_feedback(none)))",
     "spec, character 1: error_feedback: expected no other one within, found "
     "small_tensors(none,below=1024,use=error_feedback(none))\n"
     "    error_feedback(small_tensors(none,use=error_feedback(none)))\n    ^"},
    {"error_feedback(fp16(overflow=inf))",
     "spec, character 1: error_feedback: expected overflow=saturate within, found "
     "fp16(overflow=inf)\n    error_feedback(fp16(overflow=inf))\n    ^"},
    {"error_feedback(bf16(overflow=inf))",
     "spec, character 1: error_feedback: expected overflow=saturate within, found "
     "bf16(overflow=inf)\n    error_feedback(bf16(overflow=inf))\n    ^"},
    {"error_feedback(small_tensors(none,use=fp16(overflow=inf)))",
     "spec, character 1: error_feedback: expected overflow=saturate within, found "
     "small_tensors(none,below=1024,use=fp16(overflow=inf))\n"
     "    error_feedback(small_tensors(none,use=fp16(overflow=inf)))\n    ^"},
    {"delta_index",
     "spec, character 1: 'delta_index' is a recoder: it follows a compressor, as in "
     "top_k|delta_index\n    delta_index\n    ^"},
    {"error_feedback(fp16_values)",
     "spec, character 16: 'fp16_values' is a recoder: it follows a compressor, as in "
     "top_k|fp16_values\n    error_feedback(fp16_values)\n                   ^"},
    {"top_k|none",
     "spec, character 7: 'none' is no recoder: only recoders may follow '|'\n    top_k|none\n      "
     "    ^"},
    {"top_k|nome",
     "spec, character 7: unknown method 'nome'; there are {methods}\n    top_k|nome\n          ^"},
    {"none|delta_index",
     "spec, character 6: delta_index recodes sections index of U32, which none does not have\n"
     "    none|delta_index\n         ^"},
    {"top_k|delta_index|delta_index",
     "spec, character 19: delta_index recodes sections index of U32, which "
     "top_k(ratio=0.01)|delta_index does not have\n    top_k|delta_index|delta_index\n"
     "                      ^"},
    {"power_sgd|delta_index",
     "spec, character 11: delta_index recodes sections index of U32, which power_sgd(rank=2) does "
     "not have\n    power_sgd|delta_index\n              ^"},
    {"error_feedback(top_k)|delta_index",
     "spec, character 23: delta_index recodes sections index of U32, which "
     "error_feedback(top_k(ratio=0.01)) does not have\n    error_feedback(top_k)|delta_index\n"
     "                          ^"},
    {"small_tensors(none,use=1)",
     "spec, character 24: use of small_tensors: expected a compressor, found 1\n"
     "    small_tensors(none,use=1)\n                           ^"},
    {"int8(rounding=up)",
     "spec, character 15: rounding of int8: expected nearest or stochastic, found up\n"
     "    int8(rounding=up)\n                  ^"},
};

TEST(Make, ErrorsPointAtTheCharacter) {
  // A new method is in the list and changes no line here.
  std::string methods;
  for (const Method* method : Methods()) methods += (methods.empty() ? "" : ", ") + method->name;
  for (const BadSpec& bad : kBad) {
    std::string expected = bad.message;
    if (const std::size_t at = expected.find("{methods}"); at != std::string::npos)
      expected.replace(at, std::string_view("{methods}").size(), methods);
    EXPECT_EQ(ErrorOf(bad.text), expected);
  }
}

// Whatever is made can be made again of its canonical text, which is longer than what was given.
TEST(Make, CanonicalTextsAreNoLongerThanSpecs) {
  std::string spec = "fp16";
  std::size_t made = 0;
  for (; spec.size() <= kMaxSpecBytes; spec = "small_tensors(" + spec + ",use=" + spec + ")") {
    const Result<Compressor> compressor = MakeCompressor(spec);
    if (!compressor.ok()) break;
    EXPECT_EQ(Canonical(compressor->spec()), compressor->spec());
    ++made;
  }
  EXPECT_EQ(made, 7U);
  EXPECT_EQ(spec.size(), 3052U);
  EXPECT_EQ(ErrorOf(spec), "spec: expected a canonical text of at most 4096 bytes, found 6881");
}

TEST(Make, ValuesOutOfRange) {
  for (const char* ratio : {"0", "-0.0", "nan", "-nan", "1.5", "-1", "inf", "-inf", "1e-400",
                            "1e400", "0.1x", "0x1p-3", "+0.1", "1.0000001", "infinity", "."})
    EXPECT_NE(ErrorOf(std::string("top_k(ratio=") + ratio + ")")
                  .find(std::string("ratio of top_k: expected a number in (0, 1], found ") + ratio),
              std::string::npos)
        << ratio;
  for (const char* k : {"-1", "0", "1.5", "1e3", "99999999999999999999", "nan", "+1", "0x10", "1."})
    EXPECT_NE(ErrorOf(std::string("top_k(k=") + k + ")")
                  .find(std::string("k of top_k: expected an integer >= 1, found ") + k),
              std::string::npos)
        << k;
  EXPECT_NE(ErrorOf("power_sgd(rank=65)").find("rank of power_sgd: expected an integer in [1, 64]"),
            std::string::npos);
  EXPECT_NE(ErrorOf("int8(block=0)").find("block of int8: expected an integer >= 1, found 0"),
            std::string::npos);
}

TEST(Make, TheLargestValuesWork) {
  EXPECT_EQ(Canonical("top_k(ratio=1)").substr(0, 13), "top_k(ratio=1");
  for (const char* spec :
       {"top_k(k=9223372036854775807)", "int8(block=9223372036854775807)",
        "one_bit(block=9223372036854775807)", "scaled_sign(block=9223372036854775807)",
        "small_tensors(none,below=9223372036854775807)", "power_sgd(rank=64)"}) {
    const Result<Compressor> made = MakeCompressor(spec);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made->MakePlan({"t", {100}, DType::kF32}).ok()) << spec;
  }
}

}  // namespace
}  // namespace slimgrad
