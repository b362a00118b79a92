#include "core/safetensors.h"

#include <cstring>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slimgrad {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Bytes = std::vector<std::byte>;
using Entry = SafetensorsEntry;

// Exactly `size` bytes from the heap, so that the address sanitizer sees the first byte read beyond
// them.
class Exact {
 public:
  explicit Exact(std::span<const std::byte> bytes)
      : data_(new std::byte[bytes.size()]), size_(bytes.size()) {
    if (size_ > 0) std::memcpy(data_.get(), bytes.data(), size_);
  }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_;
};

// A file with this header, as it stands, and `data` zero bytes.
Bytes RawFile(const std::string& header, std::size_t data) {
  Bytes file(8 + header.size() + data);
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

Bytes File(std::string header, std::size_t data) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return RawFile(header, data);
}

std::string ErrorOf(std::span<const std::byte> file) {
  const Exact exact(file);
  const Result<Safetensors> parsed = Safetensors::Parse(exact.bytes(), "f");
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.status().code(), Code::kCorrupt);
  EXPECT_THAT(parsed.status().message(), StartsWith("f: "));
  return parsed.status().message();
}

std::string ErrorOf(const std::string& header, std::size_t data) {
  return ErrorOf(File(header, data));
}

struct Sample {
  std::vector<float> w = {1, -2.5F, 3, 4, 5, 6};
  std::vector<std::uint8_t> u = {7, 8, 9};
  std::vector<std::int64_t> i = {-1};

  std::vector<Entry> entries() const {
    return {{"u", DType::kU8, {3}, std::as_bytes(std::span(u))},
            {"w", DType::kF32, {2, 3}, std::as_bytes(std::span(w))},
            {"empty", DType::kF32, {0, 4}, {}},
            {"scalar \u00e9", DType::kI64, {}, std::as_bytes(std::span(i))}};
  }
};

TEST(Safetensors, ReadsBackWhatItWrote) {
  const Sample sample;
  const Bytes file =
      SerializeSafetensors(sample.entries(), {{"format", "test"}, {"quote", "a\"\n"}}).value();
  const Result<Safetensors> parsed = Safetensors::Parse(file, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->metadata(), (SafetensorsMetadata{{"format", "test"}, {"quote", "a\"\n"}}));
  ASSERT_EQ(parsed->entries().size(), 4U);
  for (const Entry& entry : sample.entries()) {
    const Entry* found = parsed->Find(entry.name);
    ASSERT_NE(found, nullptr) << entry.name;
    EXPECT_EQ(found->dtype, entry.dtype);
    EXPECT_EQ(found->shape, entry.shape);
    EXPECT_TRUE(std::equal(found->bytes.begin(), found->bytes.end(), entry.bytes.begin(),
                           entry.bytes.end()));
  }
  EXPECT_EQ(parsed->Find("w")->view().As<float>()[1], -2.5F);
  EXPECT_EQ(parsed->Find("v"), nullptr);
  EXPECT_EQ(parsed->Find("__metadata__"), nullptr);
}

TEST(Safetensors, LiteralBytes) {
  const float one = 1;
  const Entry entry{"w", DType::kF32, {1}, std::as_bytes(std::span(&one, 1))};
  const Bytes file = SerializeSafetensors(std::span(&entry, 1)).value();
  const std::string header = R"({"w":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  ASSERT_EQ(header.size(), 54U);
  EXPECT_EQ(file, [&] {
    Bytes expected = RawFile(header + "  ", 4);
    std::memcpy(expected.data() + 64, "\x00\x00\x80\x3F", 4);
    return expected;
  }());
}

TEST(Safetensors, WiderTypesComeFirstSoThatAllIsAligned) {
  const Sample sample;
  const Safetensors parsed =
      Safetensors::Parse(SerializeSafetensors(sample.entries()).value(), "f").value();
  std::vector<std::string> names;
  for (const Entry& entry : parsed.entries()) names.push_back(entry.name);
  EXPECT_THAT(names, testing::ElementsAre("scalar \u00e9", "w", "empty", "u"));
}

TEST(Safetensors, NoTensors) {
  const Bytes file = SerializeSafetensors({}).value();
  EXPECT_EQ(file.size(), 16U);
  EXPECT_TRUE(Safetensors::Parse(file, "f").value().entries().empty());
}

TEST(Safetensors, EveryDType) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kU8, DType::kI8, DType::kI32, DType::kU32,
        DType::kU64, DType::kI64, DType::kF64, DType::kU16}) {
    const Bytes data(3 * SizeOf(dtype), std::byte{0x5A});
    const Entry entry{"t", dtype, {3}, data};
    const Bytes file = SerializeSafetensors(std::span(&entry, 1)).value();
    const Safetensors parsed = Safetensors::Parse(file, "f").value();
    EXPECT_EQ(parsed.entries()[0].dtype, dtype);
    EXPECT_EQ(parsed.entries()[0].view().numel, 3U);
  }
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  const float value = 1;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  const auto error = [](std::vector<Entry> entries) {
    const auto file = SerializeSafetensors(entries);
    if (file.ok()) return std::string("accepted");
    EXPECT_EQ(file.status().code(), Code::kInvalidArgument);
    return file.status().message();
  };
  EXPECT_THAT(error({{"a", DType::kF32, {1}, bytes}, {"a", DType::kF32, {1}, bytes}}),
              HasSubstr("found it twice"));
  EXPECT_THAT(error({{"__metadata__", DType::kF32, {1}, bytes}}),
              HasSubstr("found the reserved one"));
  EXPECT_THAT(error({{"a\xff", DType::kF32, {1}, bytes}}), HasSubstr("expected UTF-8"));
  EXPECT_THAT(error({{"a", DType::kF32, {2}, bytes}}), HasSubstr("expected 8, found 4"));
  EXPECT_THAT(error({{"a", DType::kF32, {-1}, bytes}}), HasSubstr("no negative extent"));
  EXPECT_THAT(error({{"a", static_cast<DType>(99), {1}, bytes}}),
              HasSubstr("dtype: expected a known one, found 99"));
}

TEST(SafetensorsBadHeader, Length) {
  EXPECT_EQ(ErrorOf(Bytes(9)), "f: file size: expected at least 10 bytes, found 9 bytes");
  EXPECT_EQ(ErrorOf(Bytes()), "f: file size: expected at least 10 bytes, found 0 bytes");
  Bytes file = File("{}", 0);
  file[0] = std::byte{16};
  EXPECT_EQ(ErrorOf(file), "f: header length: expected 2 to 8 bytes, found 16");
  file[0] = std::byte{0};
  EXPECT_EQ(ErrorOf(file), "f: header length: expected 2 to 8 bytes, found 0");
  std::memset(file.data(), 0xFF, 8);
  EXPECT_EQ(ErrorOf(file), "f: header length: expected 2 to 8 bytes, found 18446744073709551615");
  EXPECT_EQ(ErrorOf(RawFile("{} ", 0)), "f: header length: expected a multiple of 8, found 3");
}

TEST(SafetensorsBadHeader, AHundredMillionBytesAtMost) {
  Bytes file(8 + 100'000'008, std::byte{' '});
  const std::uint64_t length = 100'000'008;
  std::memcpy(file.data(), &length, 8);
  EXPECT_EQ(ErrorOf(file), "f: header length: expected 2 to 100000000 bytes, found 100000008");
}

TEST(SafetensorsBadHeader, Json) {
  EXPECT_THAT(ErrorOf("hello", 0), HasSubstr("header: expected JSON"));
  EXPECT_THAT(ErrorOf("[]", 0), HasSubstr("header: expected a JSON object, found an array of 0"));
  EXPECT_THAT(ErrorOf(std::string(100'000, '['), 0),
              HasSubstr("header: expected at most 4 levels"));
  EXPECT_THAT(ErrorOf(std::string("{}\0\0\0\0\0\0", 8), 0), HasSubstr("NUL byte at offset 2"));
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(ErrorOf("{" + w + "," + w + "}", 1), HasSubstr("found \"w\" twice"));
  EXPECT_THAT(ErrorOf(R"({"__metadata__":{"a":1}})", 0),
              HasSubstr("__metadata__.\"a\": expected a string, found 1"));
  EXPECT_THAT(ErrorOf(R"({"__metadata__":[]})", 0),
              HasSubstr("__metadata__: expected an object of strings"));
}

// One tensor whose fields are these JSON texts.
std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(SafetensorsBadTensor, Keys) {
  EXPECT_EQ(ErrorOf(One("\"F32\"", "[2]", "[0,8]"), 8), "accepted");
  EXPECT_EQ(ErrorOf(R"({"w":3})", 0),
            "f: tensor \"w\": expected an object with dtype, shape and data_offsets, found 3");
  EXPECT_THAT(ErrorOf(R"({"w":{"shape":[],"data_offsets":[0,1]}})", 1),
              HasSubstr("dtype: expected"));
  EXPECT_THAT(ErrorOf(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1),
              HasSubstr("shape: expected"));
  EXPECT_THAT(ErrorOf(R"({"w":{"dtype":"U8","shape":[]}})", 1),
              HasSubstr("data_offsets: expected"));
  EXPECT_THAT(ErrorOf(R"({"w":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":0}})", 1),
              HasSubstr("found the key \"x\""));
}

TEST(SafetensorsBadTensor, DTypes) {
  for (const char* dtype : {"\"F8_E4M3\"", "\"f32\"", "\"\"", "null", "1", "[]"}) {
    EXPECT_THAT(ErrorOf(One(dtype, "[2]", "[0,8]"), 8),
                HasSubstr("f: tensor \"w\": dtype: expected F64, F32"))
        << dtype;
  }
}

TEST(SafetensorsBadTensor, Shapes) {
  for (const char* shape :
       {"[-1]", "[2.0]", "[1e0]", "[\"2\"]", "[null]", "[[2]]", "2", "null", "{}",
        "[18446744073709551615]", "[9223372036854775808]", "[99999999999999999999]"}) {
    EXPECT_THAT(ErrorOf(One("\"F32\"", shape, "[0,8]"), 8),
                HasSubstr("f: tensor \"w\": shape: expected"))
        << shape;
  }
  // Products that wrap to something plausible: 2^64 + 2^33 would be 2^33, 2^62 * 4 would be 0.
  for (const char* shape :
       {"[4611686018427387904,4]", "[4294967296,4294967296]", "[4294967296,4294967296,2]",
        "[3,6148914691236517206]", "[4611686018427387904,4,0]"}) {
    EXPECT_THAT(ErrorOf(One("\"F32\"", shape, "[0,8]"), 8),
                HasSubstr("shape: expected fewer than 2^60 elements"))
        << shape;
  }
  EXPECT_THAT(ErrorOf(One("\"F32\"", "[3]", "[0,8]"), 8),
              HasSubstr("expected 12 bytes for F32 [3], found 8"));
  EXPECT_THAT(ErrorOf(One("\"F32\"", "[1]", "[0,8]"), 8),
              HasSubstr("expected 4 bytes for F32 [1], found 8"));
}

TEST(SafetensorsBadTensor, Offsets) {
  for (const char* offsets : {"[]", "[0]", "[0,8,8]", "[-8,0]", "[0,8.0]", "[0,\"8\"]", "8", "null",
                              "[0,[8]]", "{}", "[0,99999999999999999999]"}) {
    EXPECT_THAT(ErrorOf(One("\"F32\"", "[2]", offsets), 8),
                HasSubstr("f: tensor \"w\": data_offsets: expected [begin, end], found"))
        << offsets;
  }
  for (const char* offsets :
       {"[0,9]", "[8,0]", "[8,16]", "[18446744073709551608,0]", "[0,18446744073709551615]",
        "[18446744073709551608,18446744073709551615]"}) {
    EXPECT_THAT(ErrorOf(One("\"F32\"", "[2]", offsets), 8),
                HasSubstr("expected begin <= end <= 8, found ["))
        << offsets;
  }
}

// Two U8 tensors at these places in `data` bytes.
std::string TwoAt(int a, int a_end, int b, int b_end, std::size_t data) {
  const auto one = [](const char* name, int begin, int end) {
    return std::string("\"") + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  return ErrorOf("{" + one("a", a, a_end) + "," + one("b", b, b_end) + "}", data);
}

TEST(SafetensorsBadTensor, TheDataIsTiled) {
  EXPECT_EQ(TwoAt(0, 4, 4, 8, 8), "accepted");
  EXPECT_EQ(TwoAt(4, 8, 0, 4, 8), "accepted");  // the order of the keys means nothing
  EXPECT_EQ(TwoAt(0, 4, 4, 4, 4), "accepted");
  EXPECT_EQ(TwoAt(0, 0, 0, 4, 4), "accepted");
  EXPECT_EQ(TwoAt(0, 4, 3, 8, 8),
            "f: tensor \"b\": data_offsets: expected a begin of 4, where the tensor before ends, "
            "found 3 (they overlap)");
  EXPECT_THAT(
      TwoAt(0, 8, 0, 8, 8),
      HasSubstr("expected a begin of 8, where the tensor before ends, found 0 (they overlap)"));
  EXPECT_THAT(TwoAt(0, 8, 3, 3, 8), HasSubstr("(they overlap)"));
  EXPECT_THAT(TwoAt(0, 4, 5, 8, 8),
              HasSubstr("expected a begin of 4, where the tensor before ends, found 5 (a hole)"));
  EXPECT_THAT(TwoAt(1, 4, 4, 8, 8),
              HasSubstr("expected a begin of 0, where the tensor before ends, found 1 (a hole)"));
  EXPECT_EQ(TwoAt(0, 4, 4, 8, 9),
            "f: data size: expected 8 bytes, where the last tensor ends, found 9");
  EXPECT_THAT(ErrorOf("{}", 1), HasSubstr("data size: expected 0 bytes"));
}

TEST(SafetensorsBadTensor, Unaligned) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  EXPECT_EQ(ErrorOf(header, 6),
            "f: tensor \"b\": data_offsets: expected a begin that is a multiple of 4, found 2");
}

// Parses a damaged file; whatever it says of the tensors must lie inside the file.
void ParseAndTouch(std::span<const std::byte> file) {
  const Exact exact(file);
  const Result<Safetensors> parsed = Safetensors::Parse(exact.bytes(), "f");
  if (!parsed.ok()) {
    EXPECT_THAT(parsed.status().message(), HasSubstr("expected"));
    return;
  }
  std::size_t covered = 0;
  unsigned sum = 0;
  for (const Entry& entry : parsed->entries()) {
    ASSERT_EQ(entry.bytes.size(),
              (TensorSpec{entry.name, entry.shape}).numel() * SizeOf(entry.dtype));
    for (const std::byte byte : entry.bytes) sum += static_cast<unsigned>(byte);
    covered += entry.bytes.size();
  }
  EXPECT_LE(covered, file.size());
  EXPECT_LE(sum, 255 * file.size());
}

TEST(SafetensorsDamage, EveryByteFlipped) {
  const Sample sample;
  const Bytes file = SerializeSafetensors(sample.entries(), {{"a", "b"}}).value();
  for (std::size_t i = 0; i < file.size(); ++i) {
    Bytes damaged = file;
    for (int bit = 0; bit < 8; ++bit) {
      damaged[i] = file[i] ^ static_cast<std::byte>(1 << bit);
      ParseAndTouch(damaged);
    }
    damaged[i] = ~file[i];
    ParseAndTouch(damaged);
  }
}

TEST(SafetensorsDamage, EveryTruncationIsRefused) {
  const Sample sample;
  const Bytes file = SerializeSafetensors(sample.entries(), {{"a", "b"}}).value();
  ASSERT_EQ(ErrorOf(file), "accepted");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(ErrorOf(std::span(file).first(size)), "accepted") << size;
  }
  Bytes longer = file;
  longer.push_back(std::byte{0});
  EXPECT_THAT(ErrorOf(longer), HasSubstr("data size: expected"));
}

}  // namespace
}  // namespace slimgrad
