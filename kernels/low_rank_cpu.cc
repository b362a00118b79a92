#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/cpu_lane_sum.h"
#include "kernels/cpu_ranges.h"
#include "kernels/cpu_saturate.h"
#include "kernels/low_rank.h"

namespace slimgrad::kernels::cpu {
namespace {

// Elements accumulated on the stack at a time.
constexpr std::size_t kTile = 256;

bool IsMatrix(std::size_t size, std::size_t rows, std::size_t cols) {
  if (rows == 0 || cols == 0) return size == 0;
  return size % cols == 0 && size / cols == rows;
}

void CheckShapes(std::size_t m, std::size_t rows, std::size_t cols, std::size_t p, std::size_t q,
                 std::size_t rank) {
  SLIMGRAD_CHECK(rank <= rows && rank <= cols);
  SLIMGRAD_CHECK(IsMatrix(m, rows, cols));
  SLIMGRAD_CHECK(IsMatrix(p, rows, rank));
  SLIMGRAD_CHECK(IsMatrix(q, cols, rank));
}

// Calls run.template operator()<Width>(first) for slices of 8, 4, 2 and 1 columns that make up [0,
// rank): inner loops have a width that the compiler knows.
template <class RunSlice>
void ForSlices(std::size_t rank, const RunSlice& run) {
  std::size_t first = 0;
  for (; rank - first >= 8; first += 8) run.template operator()<8>(first);
  if (rank - first >= 4) run.template operator()<4>(first), first += 4;
  if (rank - first >= 2) run.template operator()<2>(first), first += 2;
  if (rank - first >= 1) run.template operator()<1>(first);
}

// sums[r] = LaneSum over j of row[j] * q[j * rank + r], for r < Width.
template <std::size_t Width>
void RowTimesSlice(const float* __restrict row, const float* __restrict q, std::size_t cols,
                   std::size_t rank, float* __restrict sums) {
  for (std::size_t r = 0; r < Width; ++r) sums[r] = 0;
  for (std::size_t begin = 0; begin < cols; begin += std::min(kSumBlock, cols - begin)) {
    const std::size_t count = std::min(kSumBlock, cols - begin);
    alignas(64) float lanes[kSumLanes][Width] = {};
    for (std::size_t j = 0; j < count; ++j)
      for (std::size_t r = 0; r < Width; ++r)
        lanes[j % kSumLanes][r] += row[begin + j] * q[(begin + j) * rank + r];
    for (std::size_t width = kSumLanes / 2; width > 0; width /= 2)
      for (std::size_t lane = 0; lane < width; ++lane)
        for (std::size_t r = 0; r < Width; ++r) lanes[lane][r] += lanes[lane + width][r];
    for (std::size_t r = 0; r < Width; ++r) sums[r] += lanes[0][r];
  }
}

// sums[j][r] = sum over i, ascending, of m[i * cols + j] * p[i * rank + r], for j < count and r <
// Width.
template <std::size_t Width>
void ColumnsTimesSlice(const float* __restrict m, const float* __restrict p, std::size_t rows,
                       std::size_t cols, std::size_t rank, std::size_t count,
                       float (*__restrict sums)[Width]) {
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t r = 0; r < Width; ++r) sums[j][r] = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < count; ++j)
      for (std::size_t r = 0; r < Width; ++r) sums[j][r] += m[i * cols + j] * p[i * rank + r];
}

// Sum of a[i * a_step] * b[i * b_step] for i < n, ascending, in fp64.
float WideProduct(const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                  std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += static_cast<double>(a[i * a_step]) * static_cast<double>(b[i * b_step]);
  return SaturateToFloat(sum);
}

float Product(const float* __restrict a, const float* __restrict b, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return std::isfinite(sum) ? sum : WideProduct(a, 1, b, 1, n);
}

// A column of a row-major matrix of `stride` columns.
struct Column {
  float* at;
  std::size_t rows;
  std::size_t stride;

  float& operator[](std::size_t i) const { return at[i * stride]; }
};

double ColumnDot(const Column& a, const Column& b) {
  return LaneSum<double>(0, a.rows, [&](std::size_t i) {
    return static_cast<double>(a[i]) * static_cast<double>(b[i]);
  });
}

// v = v / |v|; returns |v| as it was.
double Normalize(const Column& v) {
  const double length = std::sqrt(ColumnDot(v, v));
  if (length == 0) return 0;
  for (std::size_t i = 0; i < v.rows; ++i)
    v[i] = static_cast<float>(static_cast<double>(v[i]) / length);
  return length;
}

// Takes the parts along the unit columns 0 ... c - 1 of p out of column c, kProjectColumns of them
// at a time.
void Project(float* p, std::size_t rows, std::size_t rank, std::size_t c) {
  const Column v = {p + c, rows, rank};
  double parts[kProjectColumns];
  for (std::size_t first = 0; first < c; first += kProjectColumns) {
    const std::size_t count = std::min(kProjectColumns, c - first);
    for (std::size_t k = 0; k < count; ++k) parts[k] = ColumnDot({p + first + k, rows, rank}, v);
    for (std::size_t i = 0; i < rows; ++i) {
      double rest = v[i];
      for (std::size_t k = 0; k < count; ++k)
        rest -= parts[k] * static_cast<double>(p[i * rank + first + k]);
      v[i] = static_cast<float>(rest);
    }
  }
}

// False, with column c spoilt, where it is zero or depends on those before it.
bool MakeOrthonormal(float* p, std::size_t rows, std::size_t rank, std::size_t c) {
  const Column v = {p + c, rows, rank};
  if (Normalize(v) == 0) return false;
  Project(p, rows, rank, c);
  if (Normalize(v) < 0x1p-20) return false;
  Project(p, rows, rank, c);
  Normalize(v);
  return true;
}

}  // namespace

void MultiplyRight(const Backend& backend, In m, std::size_t rows, std::size_t cols, In q,
                   std::size_t rank, Out p) {
  CheckShapes(m.size(), rows, cols, p.size(), q.size(), rank);
  ForItems(backend, rows, cols, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* row = m.data() + i * cols;
      ForSlices(rank, [&]<std::size_t Width>(std::size_t first) {
        float* sums = p.data() + i * rank + first;
        const float* slice = q.data() + first;
        RowTimesSlice<Width>(row, slice, cols, rank, sums);
        for (std::size_t r = 0; r < Width; ++r) {
          if (std::isfinite(sums[r])) continue;
          sums[r] = SaturateToFloat(LaneSum<double>(0, cols, [&](std::size_t j) {
            return static_cast<double>(row[j]) * static_cast<double>(slice[j * rank + r]);
          }));
        }
      });
    }
  });
}

void MultiplyLeft(const Backend& backend, In m, std::size_t rows, std::size_t cols, In p,
                  std::size_t rank, Out q) {
  CheckShapes(m.size(), rows, cols, p.size(), q.size(), rank);
  ForRanges(backend, cols, kTile, [&](std::size_t begin, std::size_t end) {
    ForSlices(rank, [&]<std::size_t Width>(std::size_t first) {
      alignas(64) float sums[kTile][Width] = {};
      ColumnsTimesSlice<Width>(m.data() + begin, p.data() + first, rows, cols, rank, end - begin,
                               sums);
      for (std::size_t j = begin; j < end; ++j) {
        for (std::size_t r = 0; r < Width; ++r) {
          const float sum = sums[j - begin][r];
          q[j * rank + first + r] =
              std::isfinite(sum)
                  ? sum
                  : WideProduct(m.data() + j, cols, p.data() + first + r, rank, rows);
        }
      }
    });
  });
}

void AddOuter(const Backend& backend, In p, In q, std::size_t rows, std::size_t cols,
              std::size_t rank, float weight, Out m) {
  CheckShapes(m.size(), rows, cols, p.size(), q.size(), rank);
  ForItems(backend, rows, cols, [&, weight](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = 0; j < cols; ++j) {
        const float product = Product(p.data() + i * rank, q.data() + j * rank, rank);
        m[i * cols + j] = SaturatedSum(m[i * cols + j], weight * product);
      }
    }
  });
}

void Orthonormalize(const Backend&, std::size_t rows, std::size_t rank, const RandomKey& key,
                    Out p) {
  SLIMGRAD_CHECK(rank <= rows && IsMatrix(p.size(), rows, rank));
  for (std::size_t c = 0; c < rank; ++c) {
    // A random direction may in turn be no good, with a probability below 2^-18 each time.
    for (std::uint64_t attempt = 0; !MakeOrthonormal(p.data(), rows, rank, c); ++attempt) {
      for (std::size_t i = 0; i < rows; ++i)
        p[i * rank + c] = Uniform(key, attempt * p.size() + i * rank + c) - 0.5F;
    }
  }
}

}  // namespace slimgrad::kernels::cpu
