// Inputs that every kernel family is tried with: values that break careless arithmetic, lengths
// around every block and lane, starts at each multiple of 4 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"

#include "core/executor.h"
#include "core/scratch.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

enum class Pattern {
  kNormal,
  kZeros,
  kEqual,
  kTwoValues,
  kMixedZeros,  // +0 and -0
  kDenormals,
  kHuge,    // +-3e38: two of them overflow a float
  kTiny,    // +-1e-44: seven units of the smallest float
  kSparse,  // 90 % zeros
  kSorted,
  kExponents,  // every binade
};

inline constexpr std::array kPatterns = {
    Pattern::kNormal,     Pattern::kZeros,     Pattern::kEqual,     Pattern::kTwoValues,
    Pattern::kMixedZeros, Pattern::kDenormals, Pattern::kHuge,      Pattern::kTiny,
    Pattern::kSparse,     Pattern::kSorted,    Pattern::kExponents,
};

inline const char* NameOf(Pattern pattern) {
  constexpr std::array kNames = {"normal",      "zeros",     "equal",    "two values",
                                 "mixed zeros", "denormals", "huge",     "tiny",
                                 "sparse",      "sorted",    "exponents"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

inline constexpr std::array<std::size_t, 20> kLengths = {
    0,   1,   2,   7,   8,    9,    31,   63,           64,       65,
    129, 255, 256, 257, 4095, 4096, 4097, 2 * 4096 + 1, 8192 + 2, 3 * 4096 + 17};

// More elements than one task of a cpu kernel takes, so that threads share the work.
inline constexpr std::size_t kManyTasks = 3 * 32768 + 1001;

// The stream that subject:: (subject.h) runs on, or null for the CPU. Set by main.
CudaStream*& SubjectStream();

// Whether the tests run on a GPU, or what stands in for it. There long inputs are shorter, since an
// interpreter takes its time.
inline bool OnCuda() { return SubjectStream() != nullptr; }

// Enough for the output of every cpu kernel to be streamed past the caches, in 16-bit codes too; on
// a GPU, for many blocks.
inline std::size_t Streamed() {
  return OnCuda() ? (std::size_t{1} << 16) + 1001 : (std::size_t{1} << 21) + 1001;
}

inline float OneValue(Pattern pattern, std::size_t i, std::size_t n, std::mt19937& random) {
  const auto sign = [&] { return random() % 2 == 0 ? 1.0F : -1.0F; };
  std::normal_distribution<float> normal;
  switch (pattern) {
    case Pattern::kNormal: return normal(random);
    case Pattern::kZeros: return 0.0F;
    case Pattern::kEqual: return -0.375F;
    case Pattern::kTwoValues: return random() % 3 == 0 ? 2.0F : -1.0F;
    case Pattern::kMixedZeros: return 0.0F * sign();
    case Pattern::kDenormals:
      return sign() * std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x800000));
    case Pattern::kHuge: return sign() * 3e38F;
    case Pattern::kTiny: return sign() * 1e-44F;
    case Pattern::kSparse: return random() % 10 == 0 ? normal(random) : 0.0F;
    case Pattern::kSorted: return static_cast<float>(i) - static_cast<float>(n) / 3;
    case Pattern::kExponents:
      return sign() * std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7F800000));
  }
  return 0;
}

inline std::vector<float> MakeInput(Pattern pattern, std::size_t n, std::uint32_t seed = 1) {
  std::mt19937 random(seed * 1000003U + static_cast<std::uint32_t>(n));
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = OneValue(pattern, i, n, random);
  return values;
}

// Calls test(x) for every pattern, length and start; failures are traced to them. The memory before
// x is not its own.
template <class Test>
void ForEveryInput(Test test) {
  for (Pattern pattern : kPatterns) {
    for (std::size_t n : kLengths) {
      for (std::size_t offset = 0; offset < 4; ++offset) {
        // All starts for short inputs; one, in turn, for long ones.
        if (n > 257 && offset != (n + static_cast<std::size_t>(pattern)) % 4) continue;
        SCOPED_TRACE(std::string(NameOf(pattern)) + ", n = " + std::to_string(n) + ", offset " +
                     std::to_string(offset));
        std::vector<float> memory(offset, 12345.0F);
        const std::vector<float> values = MakeInput(pattern, n);
        memory.insert(memory.end(), values.begin(), values.end());
        test(std::span<const float>(memory).subspan(offset));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

template <class T>
std::vector<std::uint64_t> BitsOf(const std::vector<T>& values) {
  std::vector<std::uint64_t> bits(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&bits[i], &values[i], sizeof(T));
  return bits;
}

// Equal bit for bit, so that +0 differs from -0; names the first element that differs.
template <class T>
::testing::AssertionResult SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " elements against " << b.size();
  const std::vector<std::uint64_t> left = BitsOf(a);
  const std::vector<std::uint64_t> right = BitsOf(b);
  const auto at = static_cast<std::size_t>(
      std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin());
  if (at == left.size()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "element " << at << " of " << a.size() << ": " << std::hex
                                       << left[at] << " against " << right[at];
}

// The same, but that any NaN equals any other: which one arithmetic gives depends on the device.
inline ::testing::AssertionResult SameBitsOrNans(std::vector<float> a, std::vector<float> b) {
  for (std::vector<float>* values : {&a, &b})
    for (float& value : *values)
      if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  return SameBits(a, b);
}

inline float FromBits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t ToBits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline bool SameDouble(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

inline constexpr float kMaxFloat = std::numeric_limits<float>::max();
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Working memory that holds NaNs, since its contents are unspecified.
inline Scratch& DirtyScratch() {
  static Scratch scratch;
  ScratchScope scope(scratch);
  std::ranges::fill(scope.Take<float>(std::size_t{1} << 20), kNan);
  return scratch;
}

// A backend of four threads.
class FourThreads {
 public:
  Backend backend() { return {Device::kCpu, nullptr, &executor_}; }

 private:
  PoolExecutor executor_{4};
};

}  // namespace slimgrad::kernels
