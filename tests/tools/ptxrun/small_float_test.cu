// half, bfloat16 and 8-bit floats: conversions and arithmetic, against the host's side of CUDA's
// headers, and arithmetic of doubles rounded once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/map.h"

namespace slimgrad {

namespace {

using Bfloat = __nv_bfloat16;

template <class Format>
struct As;
template <>
struct As<__half> {
  static double Value(__half x) { return __half2float(x); }
  static __half Of(double x) { return __double2half(x); }
  static __half OfCode(unsigned code) {
    return __ushort_as_half(static_cast<unsigned short>(code));
  }
};
template <>
struct As<Bfloat> {
  static double Value(Bfloat x) { return __bfloat162float(x); }
  static Bfloat Of(double x) { return __double2bfloat16(x); }
  static Bfloat OfCode(unsigned code) {
    return __ushort_as_bfloat16(static_cast<unsigned short>(code));
  }
};

template <class Format>
std::vector<Format> AllCodes() {
  std::vector<Format> codes;
  for (unsigned code = 0; code < 65536; ++code) codes.push_back(As<Format>::OfCode(code));
  return codes;
}

// Any bits; halfway between two of the narrow formats and just beside it; the range of halves.
std::vector<float> Floats() {
  std::mt19937 random(1);
  std::vector<float> values(20000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 4 == 1) bits = (bits & 0x80ffffff) | (100 + bits % 45) << 23;
    if (i % 4 == 2) bits = (bits & 0xffff0000) | (0x7fff + (bits & 3));
    if (i % 4 == 3) bits = (bits & 0xffffe000) | (0x0fff + (bits & 3));
    std::memcpy(&values[i], &bits, sizeof bits);
  }
  return values;
}

// CUDA's functions are for the host too: their host side is another implementation.
#define SLIMGRAD_CONVERSION(Name, Result, Argument, call)                    \
  struct Name {                                                              \
    __host__ __device__ Result operator()(Argument x) const { return call; } \
  }
SLIMGRAD_CONVERSION(HalfNearest, __half, float, __float2half_rn(x));
SLIMGRAD_CONVERSION(HalfTowardZero, __half, float, __float2half_rz(x));
SLIMGRAD_CONVERSION(HalfBelow, __half, float, __float2half_rd(x));
SLIMGRAD_CONVERSION(HalfAbove, __half, float, __float2half_ru(x));
SLIMGRAD_CONVERSION(BfloatNearest, Bfloat, float, __float2bfloat16_rn(x));
SLIMGRAD_CONVERSION(BfloatTowardZero, Bfloat, float, __float2bfloat16_rz(x));
SLIMGRAD_CONVERSION(FloatOfHalf, float, __half, __half2float(x));
SLIMGRAD_CONVERSION(FloatOfBfloat, float, Bfloat, __bfloat162float(x));
SLIMGRAD_CONVERSION(ShortOfHalf, short, __half, __half2short_rz(x));
SLIMGRAD_CONVERSION(HalfOfInt, __half, int, __int2half_rn(x));
#undef SLIMGRAD_CONVERSION

TEST(SmallFloat, FromFloat) {
  const auto x = Floats();
  ExpectSameAsOnHost(HalfNearest(), x);
  ExpectSameAsOnHost(HalfTowardZero(), x);
  ExpectSameAsOnHost(HalfBelow(), x);
  ExpectSameAsOnHost(HalfAbove(), x);
  ExpectSameAsOnHost(BfloatNearest(), x);
  ExpectSameAsOnHost(BfloatTowardZero(), x);
}

struct NearestInt {
  __device__ int operator()(__half x) const { return __half2int_rn(x); }
};

int NearestIntOnHost(__half x) {
  const float value = __half2float(x);
  if (std::isnan(value)) return 0;
  if (std::isinf(value)) return value > 0 ? INT32_MAX : INT32_MIN;
  return static_cast<int>(std::nearbyint(value));
}

TEST(SmallFloat, FromEveryCode) {
  ExpectSameAsOnHost(FloatOfHalf(), AllCodes<__half>());
  ExpectSame(NearestInt(), NearestIntOnHost, AllCodes<__half>());
  ExpectSameAsOnHost(ShortOfHalf(), AllCodes<__half>());
  ExpectSameAsOnHost(FloatOfBfloat(), AllCodes<Bfloat>());
  ExpectSameAsOnHost(HalfOfInt(), RandomInts(3000, 70000, 2));
}

struct Add {
  template <class T>
  __device__ T operator()(T x, T y, T) const {
    return __hadd(x, y);
  }
};
struct Multiply {
  template <class T>
  __device__ T operator()(T x, T y, T) const {
    return __hmul(x, y);
  }
};
struct MultiplyAdd {
  template <class T>
  __device__ T operator()(T x, T y, T z) const {
    return __hfma(x, y, z);
  }
};
struct SignsAndOrder {
  template <class T>
  __device__ T operator()(T x, T y, T z) const {
    return __hgt(x, y) ? __habs(z) : __hltu(x, z) ? __hneg(z) : z;
  }
};

// a * b + c in double, rounded to odd: rounding once more then gives the nearest of the true value.
double ToOdd(double a, double b, double c) {
  const double product = a * b;  // exact: the formats have at most 11 bits
  volatile double sum = product + c;
  if (!std::isfinite(sum) || sum == 0) return sum;
  volatile double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);
  double odd = sum;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &odd, sizeof bits);
  if (error == 0 || (bits & 1) != 0) return odd;
  return std::nextafter(odd, error > 0 ? INFINITY : -INFINITY);
}

// Ordinary values, and any code as every third.
template <class Format>
std::vector<Format> Operands(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Format> values(4000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto word = static_cast<unsigned>(random());
    const double ordinary = (static_cast<int>(word % 40001) - 20000) / 977.0;
    const int exponent = static_cast<int>(random() % 9) - 4;
    values[i] = i % 3 == 0 ? As<Format>::OfCode(word & 0xffff)
                           : As<Format>::Of(std::ldexp(ordinary, exponent));
  }
  return values;
}

template <class Format>
void ExpectArithmetic() {
  using A = As<Format>;
  const auto x = Operands<Format>(3);
  const auto y = Operands<Format>(4);
  const auto z = Operands<Format>(5);
  const auto exact = [](auto function) {
    return [=](Format a, Format b, Format c) {
      return A::Of(function(A::Value(a), A::Value(b), A::Value(c)));
    };
  };
  ExpectSame(Add(), exact([](double a, double b, double) { return ToOdd(a, 1, b); }), x, y, z);
  ExpectSame(Multiply(), exact([](double a, double b, double) { return a * b; }), x, y, z);
  ExpectSame(MultiplyAdd(), exact(ToOdd), x, y, z);
  ExpectSame(SignsAndOrder(), exact([](double a, double b, double c) {
               return a > b ? std::fabs(c) : !(a >= c) ? -c : c;
             }),
             x, y, z);
}

TEST(SmallFloat, ArithmeticOfHalves) { ExpectArithmetic<__half>(); }
TEST(SmallFloat, ArithmeticOfBfloats) { ExpectArithmetic<Bfloat>(); }

// Two in a word: each half as the scalar operation has it.
template <class Pair, class Format>
__global__ void CompareWithScalar(const Pair* x, const Pair* y, const Pair* z, int count,
                                  int* differences) {
  const int i = GlobalThread();
  if (i >= count) return;
  const Pair fused = __hfma2(x[i], y[i], z[i]);
  const Pair largest = __hmax2(__hadd2(x[i], y[i]), __hmul2(y[i], z[i]));
  const auto same = [](Format a, Format b) { return __heq(a, b) || (__hisnan(a) && __hisnan(b)); };
  const auto scalar = [&](auto half) {
    const Format a = half(x[i]), b = half(y[i]), c = half(z[i]);
    return same(half(fused), __hfma(a, b, c)) &&
           same(half(largest), __hmax(__hadd(a, b), __hmul(b, c)));
  };
  const bool low = scalar([](Pair pair) { return __low2half(pair); });
  const bool high = scalar([](Pair pair) { return __high2half(pair); });
  const unsigned mask = __hgt2_mask(x[i], y[i]);
  const bool masks = mask == ((__hgt(__low2half(x[i]), __low2half(y[i])) ? 0xffffU : 0) |
                              (__hgt(__high2half(x[i]), __high2half(y[i])) ? 0xffff0000U : 0));
  if (!low || !high || !masks) atomicAdd(differences, 1);
}

TEST(SmallFloat, PairsOfHalves) {
  const auto pairs = [](unsigned seed) {
    const auto codes = RandomWords(4000, seed);
    std::vector<__half2> values(codes.size());
    std::memcpy(static_cast<void*>(values.data()), codes.data(), codes.size() * sizeof codes[0]);
    return values;
  };
  const DeviceArray<__half2> x(pairs(6)), y(pairs(7)), z(pairs(8));
  DeviceArray<int> differences(1);
  differences.Zero();
  RunKernel(CompareWithScalar<__half2, __half>, BlocksFor(4000, 128), 128, x.data(), y.data(),
            z.data(), 4000, differences.data());
  EXPECT_EQ(differences.Get()[0], 0);
}

template <__nv_fp8_interpretation_t kFormat, __nv_saturation_t kSaturation>
struct Eight {
  __host__ __device__ std::uint8_t operator()(float x) const {
    return __nv_cvt_float_to_fp8(x, kSaturation, kFormat);
  }
};
template <__nv_fp8_interpretation_t kFormat>
struct EightOfHalf {
  __host__ __device__ std::uint8_t operator()(__half x) const {
    return __nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, kFormat);
  }
};
template <__nv_fp8_interpretation_t kFormat>
struct HalfOfEight {
  __host__ __device__ __half operator()(std::uint8_t code) const {
    return __nv_cvt_fp8_to_halfraw(code, kFormat);
  }
};

// NaN has several codes.
template <class Function, class T>
void ExpectSameEights(Function function, const std::vector<T>& inputs, unsigned largest) {
  const auto codes = MapOnDevice(function, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const unsigned expected = function(inputs[i]);
    const bool both_nan = (codes[i] & 127U) > largest && (expected & 127U) > largest;
    ASSERT_TRUE(codes[i] == expected || both_nan) << +codes[i] << ", expected " << expected;
  }
}

TEST(SmallFloat, EightBits) {
  const auto x = Floats();
  constexpr unsigned kLargestE4M3 = 0x7e;
  constexpr unsigned kInfinityE5M2 = 0x7c;
  ExpectSameEights(Eight<__NV_E4M3, __NV_SATFINITE>(), x, kLargestE4M3);
  ExpectSameEights(Eight<__NV_E5M2, __NV_SATFINITE>(), x, kInfinityE5M2);
  ExpectSameEights(Eight<__NV_E5M2, __NV_NOSAT>(), x, kInfinityE5M2);
  ExpectSameEights(EightOfHalf<__NV_E4M3>(), AllCodes<__half>(), kLargestE4M3);
  ExpectSameEights(EightOfHalf<__NV_E5M2>(), AllCodes<__half>(), kInfinityE5M2);
}

TEST(SmallFloat, FromEveryEightBitCode) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
  ExpectSameAsOnHost(HalfOfEight<__NV_E4M3>(), codes);
  ExpectSameAsOnHost(HalfOfEight<__NV_E5M2>(), codes);
}

}  // namespace
}  // namespace slimgrad
