// Integers: 64-bit and 128-bit arithmetic, bit operations, several small integers in a word.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/map.h"

namespace slimgrad {
namespace {

constexpr int kCount = 2000;

// All magnitudes are as likely.
std::vector<std::int64_t> Longs(unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> values(kCount);
  for (auto& value : values) {
    const auto word = static_cast<std::int64_t>(random());
    value = word >> (random() % 60);
  }
  return values;
}

struct Multiply {
  __host__ __device__ std::uint64_t operator()(std::int64_t x, std::int64_t y) const {
    return static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y);
  }
};
struct Divide {
  __host__ __device__ std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    return y != 0 ? x / y : 0;
  }
};
struct Remainder {
  __host__ __device__ std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    return y != 0 ? x % y : 0;
  }
};
struct DivideUnsigned {
  __host__ __device__ std::uint64_t operator()(std::int64_t x, std::int64_t y) const {
    return static_cast<std::uint64_t>(x) / (static_cast<std::uint64_t>(y) | 1);
  }
};
struct DivideInts {
  __host__ __device__ std::int32_t operator()(std::int64_t x, std::int64_t y) const {
    const auto divisor = static_cast<std::int32_t>(y) | 1;
    const auto unsigned_rest = static_cast<std::uint32_t>(x) % static_cast<std::uint32_t>(divisor);
    return static_cast<std::int32_t>(x) / divisor ^ static_cast<std::int32_t>(unsigned_rest);
  }
};
struct ShiftRight {
  __host__ __device__ std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    return x >> (y & 63);
  }
};
struct ShiftLeft {
  __host__ __device__ std::uint64_t operator()(std::int64_t x, std::int64_t y) const {
    return static_cast<std::uint64_t>(x) << (y & 63);
  }
};
struct Wide {
  __host__ __device__ std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    const __int128 product = static_cast<__int128>(x) * y + 12345;
    return static_cast<std::int64_t>(product >> 64) ^ static_cast<std::int64_t>(product);
  }
};

TEST(Integer, SixtyFourBits) {
  const auto x = Longs(1);
  const auto y = Longs(2);
  ExpectSameAsOnHost(Multiply(), x, y);
  ExpectSameAsOnHost(Divide(), x, y);
  ExpectSameAsOnHost(Remainder(), x, y);
  ExpectSameAsOnHost(DivideUnsigned(), x, y);
  ExpectSameAsOnHost(DivideInts(), x, y);
  ExpectSameAsOnHost(ShiftLeft(), x, y);
  ExpectSameAsOnHost(ShiftRight(), x, y);
  ExpectSameAsOnHost(Wide(), x, y);
}

struct HighHalf {
  __device__ std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    return __mul64hi(x, y);
  }
};
struct HighHalfUnsigned {
  __device__ std::uint64_t operator()(std::int64_t x, std::int64_t y) const {
    return __umul64hi(static_cast<unsigned long long>(x), static_cast<unsigned long long>(y));
  }
};
struct MinAndMax {
  __device__ std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    return min(x, y) ^ llabs(max(x, y));
  }
};

TEST(Integer, SixtyFourBitFunctions) {
  const auto x = Longs(3);
  const auto y = Longs(4);
  ExpectSame(
      HighHalf(),
      [](std::int64_t a, std::int64_t b) {
        return static_cast<std::int64_t>(static_cast<__int128>(a) * b >> 64);
      },
      x, y);
  ExpectSame(
      HighHalfUnsigned(),
      [](std::int64_t a, std::int64_t b) {
        const unsigned __int128 wide = static_cast<std::uint64_t>(a);
        return static_cast<std::uint64_t>(wide * static_cast<std::uint64_t>(b) >> 64);
      },
      x, y);
  ExpectSame(
      MinAndMax(),
      [](std::int64_t a, std::int64_t b) { return std::min(a, b) ^ std::llabs(std::max(a, b)); }, x,
      y);
}

TEST(Integer, ComparisonsOfEveryWidth) {
  const auto x = RandomInts(500, 5, 10);
  const auto y = RandomInts(500, 5, 11);
  const auto compare = [&]<class T>(T middle) {
    std::vector<T> a, b;
    for (const int value : x) a.push_back(static_cast<T>(middle + value - 2));
    for (const int value : y) b.push_back(static_cast<T>(middle + value - 2));
    ExpectSameAsOnHost(CompareAll(), a, b);
  };
  compare(std::int16_t{0});
  compare(std::uint16_t{0});
  compare(std::int32_t{0});
  compare(std::uint32_t{0});
  compare(std::int64_t{0});
  compare(std::uint64_t{0});
}

// The sum of f(byte of a, byte of b), each put back in its place.
template <class Function>
unsigned EachByte(unsigned a, unsigned b, Function function) {
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const int x = static_cast<int>(a >> shift & 255);
    const int y = static_cast<int>(b >> shift & 255);
    result |= (static_cast<unsigned>(function(x, y)) & 255) << shift;
  }
  return result;
}

struct AddBytes {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return __vadd4(a, b); }
};
struct MaxBytes {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return __vmaxu4(a, b); }
};
struct DistanceOfBytes {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return __vabsdiffu4(a, b); }
};
struct SubtractHalves {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return __vsubss2(a, b); }
};
struct DotBytes {
  __device__ int operator()(unsigned a, unsigned b) const {
    return __dp4a(static_cast<int>(a), static_cast<int>(b), 5);
  }
};

unsigned SubtractHalvesOnHost(unsigned a, unsigned b) {
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const int difference =
        static_cast<std::int16_t>(a >> shift) - static_cast<std::int16_t>(b >> shift);
    result |= (static_cast<unsigned>(std::clamp(difference, -32768, 32767)) & 0xffff) << shift;
  }
  return result;
}

int DotBytesOnHost(unsigned a, unsigned b) {
  int sum = 5;
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<std::int8_t>(a >> shift) * static_cast<std::int8_t>(b >> shift);
  return sum;
}

TEST(Integer, SeveralInAWord) {
  const auto a = RandomWords(256, 5);
  const auto b = RandomWords(256, 6);
  ExpectSame(
      AddBytes(),
      [](unsigned x, unsigned y) { return EachByte(x, y, [](int p, int q) { return p + q; }); }, a,
      b);
  ExpectSame(
      MaxBytes(),
      [](unsigned x, unsigned y) {
        return EachByte(x, y, [](int p, int q) { return std::max(p, q); });
      },
      a, b);
  ExpectSame(
      DistanceOfBytes(),
      [](unsigned x, unsigned y) {
        return EachByte(x, y, [](int p, int q) { return std::abs(p - q); });
      },
      a, b);
  ExpectSame(SubtractHalves(), SubtractHalvesOnHost, a, b);
  ExpectSame(DotBytes(), DotBytesOnHost, a, b);
}

struct Permute {
  __device__ unsigned operator()(unsigned a, unsigned b) const {
    return __byte_perm(a, b, a & 0x7777);
  }
};
struct Funnel {
  __device__ unsigned operator()(unsigned a, unsigned b) const {
    return __funnelshift_rc(a, b, b & 63) ^ __funnelshift_l(a, b, 7);
  }
};
struct CountBits {
  __device__ unsigned operator()(unsigned a, unsigned b) const {
    return __brev(a) + static_cast<unsigned>(__popc(b) + __clz(static_cast<int>(a)) +
                                             __ffs(static_cast<int>(b)));
  }
};
struct Averages {
  __device__ unsigned operator()(unsigned a, unsigned b) const {
    return __usad(a, b, 3) + __umul24(a, b) + __uhadd(a, b) +
           static_cast<unsigned>(__rhadd(static_cast<int>(a), static_cast<int>(b))) +
           static_cast<unsigned>(__mulhi(static_cast<int>(a), static_cast<int>(b)));
  }
};

unsigned PermuteOnHost(unsigned a, unsigned b) {
  const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const unsigned from = a >> (4 * byte) & 7;
    result |= static_cast<unsigned>(both >> (8 * from) & 255) << (8 * byte);
  }
  return result;
}

unsigned FunnelOnHost(unsigned a, unsigned b) {
  const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
  const unsigned shift = std::min(b & 63, 32U);
  return static_cast<unsigned>(both >> shift) ^ static_cast<unsigned>(both << 7 >> 32);
}

unsigned CountBitsOnHost(unsigned a, unsigned b) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (a >> bit & 1) << (31 - bit);
  const int first_set = b != 0 ? std::countr_zero(b) + 1 : 0;
  return reversed + static_cast<unsigned>(std::popcount(b) + std::countl_zero(a) + first_set);
}

unsigned AveragesOnHost(unsigned a, unsigned b) {
  const auto x = static_cast<std::int64_t>(static_cast<int>(a));
  const auto y = static_cast<std::int64_t>(static_cast<int>(b));
  const unsigned distance = (a > b ? a - b : b - a) + 3;
  const auto halved = static_cast<unsigned>((static_cast<std::uint64_t>(a) + b) >> 1);
  return distance + (a & 0xffffff) * (b & 0xffffff) + halved +
         static_cast<unsigned>((x + y + 1) >> 1) + static_cast<unsigned>(x * y >> 32);
}

TEST(Integer, Bits) {
  const auto a = RandomWords(256, 7);
  const auto b = RandomWords(256, 8);
  ExpectSame(Permute(), PermuteOnHost, a, b);
  ExpectSame(Funnel(), FunnelOnHost, a, b);
  ExpectSame(CountBits(), CountBitsOnHost, a, b);
  ExpectSame(Averages(), AveragesOnHost, a, b);
}

struct LongBits {
  __device__ int operator()(std::int64_t x) const {
    const auto bits = static_cast<unsigned long long>(x);
    return __popcll(bits) + 100 * __clzll(x) + 10000 * __ffsll(x);
  }
};

TEST(Integer, SixtyFourBitCounts) {
  ExpectSame(
      LongBits(),
      [](std::int64_t x) {
        const auto bits = static_cast<std::uint64_t>(x);
        const int first_set = bits != 0 ? std::countr_zero(bits) + 1 : 0;
        return std::popcount(bits) + 100 * std::countl_zero(bits) + 10000 * first_set;
      },
      Longs(9));
}

}  // namespace
}  // namespace slimgrad
