#include "core/hash.h"

#include <array>

#include <gtest/gtest.h>

namespace slimgrad {
namespace {

TEST(Hash, IsXxh3) {
  // 2D06800538D394C2 is XXH3-64 of nothing in the xxHash specification's own tests.
  EXPECT_EQ(Hash64(std::string_view()), 0x2D06800538D394C2U);
  EXPECT_EQ(Hash64(std::string_view("abc")), 0x78AF5F94892F3950U);
}

TEST(Hash, BytesAndTextAgree) {
  const std::array<std::byte, 3> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  EXPECT_EQ(Hash64(bytes), Hash64(std::string_view("abc")));
}

TEST(Hasher, HashesTheConcatenation) {
  EXPECT_EQ(Hasher().Add("a").Add("bc").Digest(), Hash64(std::string_view("abc")));
  EXPECT_EQ(Hasher().Digest(), Hash64(std::string_view()));
}

TEST(Hasher, IntegersAreLittleEndian) {
  const std::uint64_t value = 0x0807060504030201;
  EXPECT_EQ(Hasher().Add(value).Digest(),
            Hash64(std::string_view("\x01\x02\x03\x04\x05\x06\x07\x08")));
}

}  // namespace
}  // namespace slimgrad
