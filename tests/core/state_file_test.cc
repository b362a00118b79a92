#include "core/state_file.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/hash.h"

namespace slimgrad {
namespace {

struct Inner {
  Buffer<std::uint8_t> bits{5};
  std::int64_t count = -3;
  void Fields(FieldVisitor& visit) {
    visit("bits", bits);
    visit("count", count);
  }
};

struct Outer {
  Buffer<float> residual{3};
  State inner{Inner{}};
  void Fields(FieldVisitor& visit) {
    visit("residual", residual);
    visit("inner", inner);
  }
};

struct Nothing {
  void Fields(FieldVisitor&) {}
};

// The states of three tensors: one with everything, one with an empty field, one without any.
struct States {
  std::vector<TensorSpec> tensors = {{"0.weight", {3, 1}}, {"empty", {0}}, {"0.bias", {3}}};
  State outer{Outer{}}, empty{Inner{}}, nothing{Nothing{}};

  explicit States(float seed) {
    auto& o = outer.As<Outer>();
    for (std::size_t i = 0; i < 3; ++i) o.residual.span()[i] = seed + static_cast<float>(i);
    o.residual.span()[1] = std::bit_cast<float>(0x7fc12345U);  // a NaN's payload is kept too
    o.inner.As<Inner>().count = static_cast<std::int64_t>(seed);
    empty.As<Inner>().bits = Buffer<std::uint8_t>(0);
  }
  std::vector<TensorState> refs() {
    return {{&tensors[0], &outer}, {&tensors[1], &empty}, {&tensors[2], &nothing}};
  }
  // All fields' bytes.
  std::string Bits() {
    struct Collector final : FieldVisitor {
      void Field(const std::string& path, DType, std::span<std::byte> bytes, Memory&) override {
        all += path + ":";
        all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      std::string all;
    } collector;
    for (State* state : {&outer, &empty, &nothing}) state->Fields(collector);
    return collector.all;
  }
};

const StateHeader kHeader = {"error_feedback(top_k(ratio=0.01))", 1, 4, 77, 5};

std::vector<std::byte> FileOf(States& states, const StateHeader& header = kHeader) {
  auto file = SerializeState(header, states.refs());
  EXPECT_TRUE(file.ok()) << file.status().message();
  return *file;
}

// The error of reading `file` into fresh states, which must stay as they were.
Status ErrorOf(std::span<const std::byte> file, const StateHeader& expected = kHeader) {
  States states(100);
  const std::string before = states.Bits();
  const auto header = DeserializeState(file, "a.state", expected, states.refs());
  EXPECT_FALSE(header.ok());
  EXPECT_EQ(states.Bits(), before);
  return header.status();
}

std::string Text(std::span<const std::byte> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

std::vector<std::byte> Bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  return text.replace(text.find(from), from.size(), to);
}

TEST(StateFile, ComesBackBitForBit) {
  States from(7), to(100);
  const auto file = FileOf(from);
  ASSERT_NE(from.Bits(), to.Bits());
  StateHeader expected = kHeader;
  expected.step = 0;  // is not looked at
  const auto header = DeserializeState(file, "a.state", expected, to.refs());
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(from.Bits(), to.Bits());
  EXPECT_EQ(header->step, 77U);
  EXPECT_EQ(header->spec, kHeader.spec);
  EXPECT_EQ(FileOf(to), file);  // equal states, equal bytes
}

TEST(StateFile, HeaderCanBeReadWithoutTheStates) {
  States states(7);
  const auto bytes = FileOf(states);
  const auto file = Safetensors::Parse(bytes, "a.state");
  ASSERT_TRUE(file.ok());
  EXPECT_NE(file->Find("0.weight::inner/bits"), nullptr);
  const auto header = ReadStateHeader(*file, "a.state");
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->rank, 1U);
  EXPECT_EQ(header->world, 4U);
  EXPECT_EQ(header->seed, 5U);
}

// The checksum as docs/wire_format.md writes it down.
TEST(StateFile, MetadataIsWhatTheFormatSays) {
  States states(7);
  const auto bytes = FileOf(states);
  const auto file = Safetensors::Parse(bytes, "a.state");
  ASSERT_TRUE(file.ok());
  SafetensorsMetadata metadata = file->metadata();
  EXPECT_EQ(metadata.at("format"), "slimgrad-state");
  EXPECT_EQ(metadata.at("version"), "1");
  EXPECT_EQ(metadata.at("step"), "77");
  EXPECT_EQ(metadata.at("tensors"), R"([{"name":"0.weight","range":[0,3],"shape":[3,1]},)"
                                    R"({"name":"empty","range":[0,0],"shape":[0]},)"
                                    R"({"name":"0.bias","range":[0,3],"shape":[3]}])");
  const std::string checksum = metadata.at("checksum");
  metadata.erase("checksum");
  std::vector<SafetensorsEntry> by_name = file->entries();
  std::sort(by_name.begin(), by_name.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  Hasher fields, all;
  for (const SafetensorsEntry& field : by_name) {
    fields.Add(std::uint64_t{field.name.size()}).Add(field.name);
    fields.Add(static_cast<std::uint64_t>(field.dtype)).Add(std::uint64_t{1});
    fields.Add(static_cast<std::uint64_t>(field.shape.at(0))).Add(Hash64(field.bytes));
  }
  for (const auto& [key, value] : metadata)
    all.Add(std::uint64_t{key.size()}).Add(key).Add(std::uint64_t{value.size()}).Add(value);
  char expected[17];
  std::snprintf(expected, sizeof expected, "%016llx",
                static_cast<unsigned long long>(all.Add(fields.Digest()).Digest()));
  EXPECT_EQ(checksum, expected);
}

TEST(StateFile, WithoutAnyField) {
  const std::vector<TensorSpec> tensors = {{"w", {2}}};
  State nothing{Nothing{}};
  const std::vector<TensorState> states = {{&tensors[0], &nothing}};
  const auto file = SerializeState(kHeader, states);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(DeserializeState(*file, "a.state", kHeader, states).ok());
}

TEST(StateFile, EveryDamagedByteIsRefused) {
  States states(7);
  const auto whole = FileOf(states);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      auto file = whole;
      file[at] ^= std::byte(change);
      EXPECT_FALSE(ErrorOf(file).ok()) << "byte " << at << " xor " << change;
    }
}

TEST(StateFile, EveryTruncationIsRefused) {
  States states(7);
  const auto whole = FileOf(states);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ErrorOf(std::span(whole).first(size)).code(), Code::kCorrupt) << size;
  auto longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(ErrorOf(longer).code(), Code::kCorrupt);
}

TEST(StateFile, AnotherRunIsRefusedByName) {
  States states(7);
  const auto file = FileOf(states);
  const auto error = [&](auto change) {
    StateHeader expected = kHeader;
    change(expected);
    const Status status = ErrorOf(file, expected);
    EXPECT_EQ(status.code(), Code::kMismatch);
    return status.message();
  };
  EXPECT_EQ(error([](StateHeader& h) { h.spec = "none"; }),
            "a.state: spec: expected none, found error_feedback(top_k(ratio=0.01))");
  EXPECT_EQ(error([](StateHeader& h) { h.rank = 2; }), "a.state: rank: expected 2, found 1");
  EXPECT_EQ(error([](StateHeader& h) { h.world = 8; }), "a.state: world: expected 8, found 4");
  EXPECT_EQ(error([](StateHeader& h) { h.seed = 6; }), "a.state: seed: expected 6, found 5");
}

TEST(StateFile, OtherTensorsAreRefused) {
  States states(7);
  const auto file = FileOf(states);
  const auto error = [&](auto change) {
    States other(100);
    change(other);
    const std::string before = other.Bits();
    const auto header = DeserializeState(file, "a.state", kHeader, other.refs());
    EXPECT_EQ(header.status().code(), Code::kMismatch);
    EXPECT_NE(header.status().message().find("a.state: tensors: expected "), std::string::npos);
    EXPECT_EQ(other.Bits(), before);
    return header.status().message();
  };
  EXPECT_NE(error([](States& s) { s.tensors[0].name = "1.weight"; }).find("1.weight"),
            std::string::npos);
  EXPECT_NE(error([](States& s) { s.tensors[0].shape = {1, 3}; }).find("[1,3]"), std::string::npos);
  error([](States& s) { std::swap(s.tensors[0], s.tensors[1]); });
}

TEST(StateFile, OtherFieldsAreRefused) {
  States from(7);
  const auto file = FileOf(from);
  const auto error = [&](State state) {
    States other(100);
    other.outer = std::move(state);
    const auto header = DeserializeState(file, "a.state", kHeader, other.refs());
    EXPECT_EQ(header.status().code(), Code::kMismatch);
    return header.status().message();
  };
  struct Longer {
    Buffer<float> residual{4};
    void Fields(FieldVisitor& visit) { visit("residual", residual); }
  };
  EXPECT_EQ(error(State{Longer{}}), "a.state: 0.weight::residual: bytes: expected 16, found 12");
  struct Typed {
    Buffer<std::int32_t> residual{3};
    void Fields(FieldVisitor& visit) { visit("residual", residual); }
  };
  EXPECT_EQ(error(State{Typed{}}), "a.state: 0.weight::residual: dtype: expected I32, found F32");
  struct Named {
    Buffer<float> momentum{3};
    void Fields(FieldVisitor& visit) { visit("momentum", momentum); }
  };
  EXPECT_EQ(error(State{Named{}}), "a.state: expected a field '0.weight::momentum', found none");
  EXPECT_EQ(error(State{Nothing{}}), "a.state: fields: expected 2, found 5");
}

TEST(StateFile, SaysWhatIsWrongWithADamagedOne) {
  States states(7);
  const std::string whole = Text(FileOf(states));
  const auto error = [&](const std::string& from, const std::string& to) {
    return ErrorOf(Bytes(Replaced(whole, from, to))).message();
  };
  EXPECT_EQ(error("slimgrad-state", "slimgrad-stale"),
            "a.state: format: expected 'slimgrad-state', found 'slimgrad-stale'");
  EXPECT_EQ(error(R"("version":"1")", R"("version":"2")"),
            "a.state: version: expected '1', found '2'");
  EXPECT_NE(error(R"("rank":"1")", R"("rank":"2")").find("a.state: checksum: expected '"),
            std::string::npos);
  EXPECT_EQ(error(R"("checksum")", R"("chequsum")"),
            "a.state: __metadata__: expected 'checksum', found none");
  EXPECT_EQ(ErrorOf(Bytes("just some text, no state file")).code(), Code::kCorrupt);
}

TEST(StateFile, TheShapeOfAFieldIsCovered) {
  // safetensors would take [3] for [1,3]: only the checksum knows better.
  States states(7);
  std::string text = Text(FileOf(states));
  const std::size_t at = text.find(R"("shape":[3])", text.find("0.weight::residual"));
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, R"("shape":[1,3])");
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  std::size_t grown = length + 2, pad = 0;
  while ((grown + pad) % 8 != 0) ++pad;
  text.insert(8 + grown, std::string(pad, ' '));
  length = grown + pad;
  std::memcpy(text.data(), &length, sizeof length);
  ASSERT_TRUE(Safetensors::Parse(Bytes(text), "a.state").ok());
  EXPECT_NE(ErrorOf(Bytes(text)).message().find("a.state: checksum: expected '"),
            std::string::npos);
}

TEST(StateFile, ANameThatIsNotUtf8IsRefusedNotThrown) {
  std::vector<TensorSpec> tensors = {{"\xff", {3}}};
  State nothing{Nothing{}}, outer{Outer{}};
  for (State* state : {&nothing, &outer}) {
    const std::vector<TensorState> states = {{&tensors[0], state}};
    EXPECT_EQ(SerializeState(kHeader, states).status().code(), Code::kInvalidArgument);
  }
  States good(7);
  const auto file = FileOf(good);
  good.tensors[0].name = "\xff";
  EXPECT_EQ(DeserializeState(file, "a.state", kHeader, good.refs()).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace slimgrad
