// float and double: exact operations in every rounding mode, functions within a tolerance, and
// conversions to integers and back.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/ptxrun/map.h"

namespace slimgrad {
namespace {

constexpr int kCount = 2000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Read from memory, so that no compiler computes with it before the rounding mode is set.
template <class T>
T Hidden(T value) {
  volatile T copy = value;
  return copy;
}

// A function of the host under a rounding mode.
template <class Function>
auto Under(int mode, Function function) {
  return [=](auto... values) {
    std::fesetround(mode);
    const volatile auto result = function(Hidden(values)...);
    std::fesetround(FE_TONEAREST);
    return static_cast<decltype(function(values...))>(result);
  };
}

template <class T>
std::vector<T> Values(T scale, std::vector<T> first, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values = std::move(first);
  while (values.size() < kCount)
    values.push_back(static_cast<T>(static_cast<int>(random() % 200001) - 100000) / scale);
  return values;
}

struct Add {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return x + y;
  }
};
struct Multiply {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return x * y;
  }
};
struct Divide {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return x / y;
  }
};
struct MultiplyAdd {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return fma(x, y, x);
  }
};
struct Root {
  template <class T>
  __host__ __device__ T operator()(T x, T) const {
    return sqrt(fabs(x));
  }
};
struct ToIntegers {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return floor(x) + ceil(y) + rint(x) + trunc(y);
  }
};
struct Remainder {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return fmod(x, y);
  }
};
struct Pick {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return copysign(fmax(x, y), fmin(x, y));
  }
};

template <class T>
void ExpectExactOperations(const std::vector<T>& x, const std::vector<T>& y) {
  ExpectSameAsOnHost(Add(), x, y);
  ExpectSameAsOnHost(Multiply(), x, y);
  ExpectSameAsOnHost(Divide(), x, y);
  ExpectSameAsOnHost(MultiplyAdd(), x, y);
  ExpectSameAsOnHost(Root(), x, y);
  ExpectSameAsOnHost(ToIntegers(), x, y);
  ExpectSameAsOnHost(Remainder(), x, y);
  ExpectSameAsOnHost(Pick(), x, y);
  ExpectSameAsOnHost(CompareAll(), x, y);
  ExpectSameAsOnHost(CompareAll(), x, x);
}

TEST(Float, ExactOperations) {
  ExpectExactOperations(Values<float>(97, {1e38F, 1e-40F, NAN, 1, -0.0F, INFINITY, 0}, 1),
                        Values<float>(7919, {1e10F, 3, 1, 0, 0.0F, INFINITY, 0}, 2));
}

TEST(Float, ExactOperationsOfDoubles) {
  ExpectExactOperations(Values<double>(997, {1e308, 5e-324, NAN, 1, -0.0, kInfinity, 0}, 3),
                        Values<double>(331, {1e10, 3, 1, 0, 0.0, kInfinity, 0}, 4));
}

struct AddToZero {
  __device__ float operator()(float x, float y) const { return __fadd_rz(x, y); }
};
struct MultiplyDown {
  __device__ float operator()(float x, float y) const { return __fmul_rd(x, y); }
};
struct DivideUp {
  __device__ float operator()(float x, float y) const { return __fdiv_ru(x, y); }
};
struct RootDown {
  __device__ float operator()(float x, float) const { return __fsqrt_rd(fabsf(x)); }
};

TEST(Float, RoundingModes) {
  const auto x = Values<float>(97, {}, 5);
  const auto y = Values<float>(7919, {}, 6);
  ExpectSame(AddToZero(), Under(FE_TOWARDZERO, Add()), x, y);
  ExpectSame(MultiplyDown(), Under(FE_DOWNWARD, Multiply()), x, y);
  ExpectSame(DivideUp(), Under(FE_UPWARD, Divide()), x, y);
  ExpectSame(RootDown(), Under(FE_DOWNWARD, Root()), x, y);
}

struct AddDoublesToZero {
  __device__ double operator()(double x, double y) const { return __dadd_rz(x, y); }
};
struct MultiplyDoublesUp {
  __device__ double operator()(double x, double y) const { return __dmul_ru(x, y); }
};
struct DivideDoublesDown {
  __device__ double operator()(double x, double y) const { return __ddiv_rd(x, y); }
};

TEST(Float, RoundingModesOfDoubles) {
  const auto x = Values<double>(997, {1e308, 5e-324}, 7);
  const auto y = Values<double>(331, {1e10, 3}, 8);
  ExpectSame(AddDoublesToZero(), Under(FE_TOWARDZERO, Add()), x, y);
  ExpectSame(MultiplyDoublesUp(), Under(FE_UPWARD, Multiply()), x, y);
  ExpectSame(DivideDoublesDown(), Under(FE_DOWNWARD, Divide()), x, y);
}

struct Exponential {
  __device__ float operator()(float x) const { return expf(x * 0.125F); }
};
struct FastExponential {
  __device__ float operator()(float x) const { return __expf(x * 0.125F); }
};
struct Logarithm {
  __device__ float operator()(float x) const { return logf(fabsf(x)); }
};
struct BinaryLogarithm {
  __device__ float operator()(float x) const { return log2f(fabsf(x)); }
};
struct InverseRoot {
  __device__ float operator()(float x) const { return rsqrtf(fabsf(x)); }
};
struct HyperbolicTangent {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct ErrorFunction {
  __device__ float operator()(float x) const { return erff(x); }
};
struct Power {
  __device__ float operator()(float x) const { return powf(fabsf(x), 1.25F); }
};
struct FastQuotient {
  __device__ float operator()(float x) const { return __fdividef(x, 7); }
};

// Bounds are those of CUDA's programming guide, or wider.
TEST(Float, FunctionsWithinTolerance) {
  const auto x = Values<float>(7919, {}, 9);
  ExpectWithinUlps(
      4, Exponential(), [](double a) { return std::exp(a / 8); }, x);
  ExpectWithinUlps(
      10, FastExponential(), [](double a) { return std::exp(a / 8); }, x);
  ExpectWithinUlps(
      4, Logarithm(), [](double a) { return std::log(std::fabs(a)); }, x);
  ExpectWithinUlps(
      4, BinaryLogarithm(), [](double a) { return std::log2(std::fabs(a)); }, x);
  ExpectWithinUlps(
      4, InverseRoot(), [](double a) { return 1 / std::sqrt(std::fabs(a)); }, x);
  ExpectWithinUlps(
      8, HyperbolicTangent(), [](double a) { return std::tanh(a); }, x);
  ExpectWithinUlps(
      4, ErrorFunction(), [](double a) { return std::erf(a); }, x);
  ExpectWithinUlps(
      8, Power(), [](double a) { return std::pow(std::fabs(a), 1.25); }, x);
  ExpectWithinUlps(
      4, FastQuotient(), [](double a) { return a / 7; }, x);
}

struct ExponentialOfDouble {
  __device__ double operator()(double x) const { return exp(x * 0.125); }
};
struct PowerOfDouble {
  __device__ double operator()(double x) const { return pow(fabs(x), 0.3); }
};

TEST(Float, FunctionsOfDoubles) {
  const auto x = Values<double>(997, {}, 10);
  const auto exponentials = MapOnDevice(ExponentialOfDouble(), x);
  const auto powers = MapOnDevice(PowerOfDouble(), x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exponential = std::exp(x[i] / 8);
    const double power = std::pow(std::fabs(x[i]), 0.3);
    ASSERT_NEAR(exponentials[i], exponential, 4e-15 * exponential);
    ASSERT_NEAR(powers[i], power, 4e-15 * power);
  }
}

// The nearest value that the type has; NaN becomes `for_nan`.
template <class Integer>
Integer Saturated(double x, Integer for_nan) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(x)) return for_nan;
  if (x <= static_cast<double>(Limits::min())) return Limits::min();
  if (x >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<Integer>(x);
}

struct NearestInt {
  __device__ int operator()(float x) const { return __float2int_rn(x); }
};
struct IntBelow {
  __device__ int operator()(float x) const { return __float2int_rd(x); }
};
struct UnsignedAbove {
  __device__ unsigned operator()(float x) const { return __float2uint_ru(x); }
};
struct LongTowardZero {
  __device__ std::int64_t operator()(float x) const { return __float2ll_rz(x); }
};
struct NearestIntOfDouble {
  __device__ int operator()(double x) const { return __double2int_rn(x); }
};
struct LongBelowDouble {
  __device__ std::int64_t operator()(double x) const { return __double2ll_rd(x); }
};

TEST(Float, ToIntegers) {
  auto x = Values<float>(1e-2F, {NAN, INFINITY, -INFINITY, -0.5F, 3e9F, 1e19F, 2.5F}, 11);
  for (std::size_t i = 8; i < x.size(); i += 2) x[i] = std::ldexp(x[i], -20);
  const std::vector<double> doubles(x.begin(), x.end());
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  ExpectSame(
      NearestInt(), [](float a) { return Saturated<int>(std::nearbyint(a), 0); }, x);
  ExpectSame(
      IntBelow(), [](float a) { return Saturated<int>(std::floor(a), 0); }, x);
  ExpectSame(
      UnsignedAbove(), [](float a) { return Saturated<unsigned>(std::ceil(a), 0); }, x);
  ExpectSame(
      LongTowardZero(), [&](float a) { return Saturated<std::int64_t>(a, kLeast); }, x);
  ExpectSame(
      NearestIntOfDouble(), [](double a) { return Saturated<int>(std::nearbyint(a), INT32_MIN); },
      doubles);
  ExpectSame(
      LongBelowDouble(), [&](double a) { return Saturated<std::int64_t>(std::floor(a), kLeast); },
      doubles);
}

struct FloatOfLong {
  __device__ float operator()(std::int64_t x) const { return __ll2float_rn(x); }
};
struct FloatTowardZero {
  __device__ float operator()(std::int64_t x) const {
    return __uint2float_rz(static_cast<unsigned>(x));
  }
};
struct DoubleAbove {
  __device__ double operator()(std::int64_t x) const { return __ll2double_ru(x); }
};
struct FloatBelowDouble {
  __device__ float operator()(double x) const { return __double2float_rd(x); }
};

TEST(Float, FromIntegers) {
  std::mt19937_64 random(12);
  std::vector<std::int64_t> x(kCount);
  for (auto& value : x) value = static_cast<std::int64_t>(random());
  ExpectSame(
      FloatOfLong(), [](std::int64_t a) { return static_cast<float>(a); }, x);
  ExpectSame(FloatTowardZero(),
             Under(FE_TOWARDZERO,
                   [](std::int64_t a) { return static_cast<float>(static_cast<unsigned>(a)); }),
             x);
  ExpectSame(DoubleAbove(), Under(FE_UPWARD, [](std::int64_t a) { return static_cast<double>(a); }),
             x);
  ExpectSame(FloatBelowDouble(), Under(FE_DOWNWARD, [](double a) { return static_cast<float>(a); }),
             Values<double>(997, {1e300, -1e300, 1e-320}, 13));
}

}  // namespace
}  // namespace slimgrad
