#include "sim/inspect.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "core/frame.h"
#include "core/state_file.h"
#include "tests/sim/synthetic_trace.h"

namespace slimgrad::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class InspectTest : public TraceFolder {
 protected:
  // The text, or the error after "error: ".
  std::string Text(const std::filesystem::path& path) const {
    const Result<std::string> text = Inspect(path);
    return text.ok() ? *text : "error: " + text.status().message();
  }
  std::string TextOf(std::string_view bytes) const {
    EXPECT_TRUE(WriteFileAtomically(root_ / "file", bytes).ok());
    return Text(root_ / "file");
  }
};

TEST_F(InspectTest, ATrace) {
  const SyntheticTrace made;
  ASSERT_TRUE(made.WriteTo(folder_).ok());
  EXPECT_EQ(Text(folder_),
            "trace          synthetic\n"
            "model          softmax, 8 parameters: linear\n"
            "workers        2\n"
            "steps          3\n"
            "optimizer      sgd, momentum 0.9, dampening 0, weight decay 0, no clipping\n"
            "learning rate  0.100 to 0.0250\n"
            "loss           cross_entropy\n"
            "gradients      F32, 6 files checked, 192B, all finite\n"
            "data           made up: 4 training rows, 3 features, 2 classes; 2 evaluation rows; "
            "batches of 2 rows a worker\n"
            "weights        initial and final\n"
            "timing         ready times, forward, backward, optimizer\n"
            "results        evaluation accuracy 0.750, training loss 0.700 to 0.500 nats\n"
            "provenance     seed: 1\n"
            "license        data: none needed\n"
            "\n"
            "tensor  shape   elements\n"
            "w       [2, 3]  6\n"
            "b       [2]     2\n"
            "all             8\n");
}

TEST_F(InspectTest, ATraceWithABadStep) {
  const SyntheticTrace made;
  ASSERT_TRUE(made.WriteTo(folder_).ok());
  const std::vector<float> six(6, 1);
  const std::vector<float> two = {1, std::nanf("")};
  WriteTensors("steps/00001.000.safetensors", made.step(six, two));
  EXPECT_THAT(Text(folder_), HasSubstr("1 with values that are not finite"));
  Write("steps/00002.001.safetensors", "short");
  EXPECT_THAT(
      Text(folder_),
      HasSubstr("error: " + (folder_ / "steps/00002.001.safetensors").string() + ": file size"));
}

// A frame with a few sections, as SealFrame writes it.
std::string SomeFrame(std::uint64_t step) {
  alignas(16) static std::byte memory[512];
  Payload payload(FrameBody(memory));
  payload.Add<std::uint32_t>(Tag::kIndex, 3)[0] = 7;
  payload.Add<float>(Tag::kValue, 3)[0] = 1.5F;
  const auto bytes = SealFrame(memory, payload, {0x0123456789ABCDEF, 1000, step, 1});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(InspectTest, PayloadFramesInARow) {
  const std::string text = TextOf(SomeFrame(41) + SomeFrame(42));
  EXPECT_THAT(text, testing::StartsWith("frame          0, 112 bytes\n"
                                        "spec hash      0123456789abcdef\n"
                                        "elements       1000\n"
                                        "step           41\n"
                                        "round          1\n"
                                        "payload        0.896 bits an element, header included\n"
                                        "section  dtype  elements  bytes\n"
                                        "index    U32    3         12\n"
                                        "value    F32    3         12\n"
                                        "\n"
                                        "frame          1, 112 bytes\n"));
  EXPECT_THAT(text, HasSubstr("step           42\n"));
}

TEST_F(InspectTest, DamagedFrames) {
  const std::string frame = SomeFrame(1);
  for (std::size_t i = 4; i < frame.size(); ++i) {
    std::string damaged = frame;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_THAT(TextOf(damaged),
                AllOf(HasSubstr("error: "), HasSubstr("file: frame 0: "), HasSubstr("expected")))
        << i;
  }
  EXPECT_THAT(TextOf(frame + frame.substr(0, 60)), HasSubstr("file: frame 1: "));
}

struct SomeState {
  Buffer<float> residual;
  std::uint64_t count = 3;
  void Fields(FieldVisitor& visit) {
    visit("residual", residual);
    visit("count", count);
  }
};

std::string SomeStateFile() {
  SomeState some;
  some.residual = Buffer<float>(2);
  some.residual.span()[0] = 3;
  some.residual.span()[1] = -4;
  State state(std::move(some));
  const TensorSpec tensor{"0.weight", {2}};
  const TensorState states[] = {{&tensor, &state}};
  const std::vector<std::byte> bytes =
      SerializeState({"error_feedback(top_k(k=1))", 1, 4, 17, 5}, states).value();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(InspectTest, AStateFile) {
  EXPECT_EQ(TextOf(SomeStateFile()),
            "state of       error_feedback(top_k(k=1))\n"
            "rank           1 of 4\n"
            "next step      17\n"
            "seed           5\n"
            "\n"
            "field               dtype  shape  norm\n"
            "0.weight::count     U64    [1]    -\n"
            "0.weight::residual  F32    [2]    5.00\n");
}

TEST_F(InspectTest, ADamagedStateFile) {
  const std::string good = SomeStateFile();
  std::string damaged = good;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_THAT(TextOf(damaged), AllOf(HasSubstr("error: "), HasSubstr("checksum")));
  EXPECT_THAT(TextOf(good.substr(0, good.size() - 1)), HasSubstr("error: "));
}

TEST_F(InspectTest, AnythingElse) {
  constexpr const char* kExpected =
      "file: expected the folder of a trace, a file of payload frames or a state file, found ";
  EXPECT_THAT(TextOf(""), HasSubstr(kExpected + std::string("an empty file")));
  EXPECT_THAT(TextOf("# A text file, say\n"),
              HasSubstr(kExpected +
                        std::string("a file of 19 bytes that starts with \"# A text file, s\"")));
  EXPECT_THAT(TextOf("\x1b[31mred"), HasSubstr("starts with \"\\x1B[31mred\""));
  const std::vector<std::byte> plain = SerializeSafetensors({}).value();
  EXPECT_THAT(
      TextOf({reinterpret_cast<const char*>(plain.data()), plain.size()}),
      HasSubstr(kExpected + std::string("a safetensors file of 0 tensors that is no state")));
  EXPECT_THAT(Text(root_ / "missing"), HasSubstr("missing: cannot open: No such file"));
  EXPECT_THAT(Text(root_), HasSubstr("trace.json: cannot open"));
}

TEST(InspectRecorded, DigitsMlp) {
  const Result<std::string> text = Inspect("traces/digits_mlp");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("gradients      F32, 384 files checked, 3.70MB, all finite\n"));
  EXPECT_THAT(*text, HasSubstr("all                 2410\n"));
}

}  // namespace
}  // namespace slimgrad::sim
