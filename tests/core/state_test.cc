#include "core/state.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

struct Inner {
  Buffer<std::uint8_t> bits{3};
  std::int64_t count = 5;
  void Fields(FieldVisitor& visit) {
    visit("bits", bits);
    visit("count", count);
  }
};

struct Outer {
  Buffer<float> residual{2};
  Buffer<float> within_a_step{100};  // not listed
  State inner{Inner{}};
  double mean = 1.5;
  void Fields(FieldVisitor& visit) {
    visit("residual", residual);
    visit("inner", inner);
    visit("mean", mean);
  }
};

struct Top {
  State a{Outer{}}, b{Inner{}}, none;
  void Fields(FieldVisitor& visit) {
    visit("a", a);
    visit("none", none);
    visit("b", b);
  }
};

struct Lister final : FieldVisitor {
  void Field(const std::string& path, DType dtype, std::span<std::byte> bytes, Memory&) override {
    lines.push_back(path + " " + std::string(NameOf(dtype)) + " " + std::to_string(bytes.size()));
    memory.push_back(bytes);
  }
  std::vector<std::string> lines;
  std::vector<std::span<std::byte>> memory;
};

TEST(State, VisitsNestedFieldsInOrderUnderTheirPaths) {
  State state{Top{}};
  Lister lister;
  state.Fields(lister);
  EXPECT_EQ(lister.lines, (std::vector<std::string>{"a/residual F32 8", "a/inner/bits U8 3",
                                                    "a/inner/count I64 8", "a/mean F64 8",
                                                    "b/bits U8 3", "b/count I64 8"}));
}

TEST(State, FieldsAreTheMemoryItself) {
  State state{Outer{}};
  Lister lister;
  state.Fields(lister);
  auto& outer = state.As<Outer>();
  EXPECT_EQ(lister.memory[0].data(), reinterpret_cast<std::byte*>(outer.residual.data()));
  const double value = 2.5;
  std::memcpy(lister.memory[3].data(), &value, sizeof value);
  EXPECT_EQ(outer.mean, 2.5);
}

TEST(State, BytesAreThoseOfTheListedFields) {
  State outer{Outer{}}, top{Top{}}, none;
  EXPECT_EQ(StateBytes(outer), 8U + 3 + 8 + 8);
  EXPECT_EQ(StateBytes(top), 27U + 11);
  EXPECT_EQ(StateBytes(none), 0U);
}

TEST(State, MovesWithoutMovingItsValue) {
  State from{Outer{}};
  const Outer* value = &from.As<Outer>();
  State to = std::move(from);
  EXPECT_EQ(&to.As<Outer>(), value);
}

TEST(State, IsItsOwnInside) {
  State state{Outer{}};
  EXPECT_EQ(&state.As<State>(), &state);
}

TEST(StateDeathTest, AsAnotherTypeStops) {
  State state{Outer{}}, none;
  EXPECT_DEATH(static_cast<void>(state.As<Inner>()), "check failed");
  EXPECT_DEATH(static_cast<void>(none.As<Inner>()), "check failed");
}

}  // namespace
}  // namespace slimgrad
