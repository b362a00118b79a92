// Private to the cpu kernels of low_rank.h: factors as planes, and sums formed again in fp64.
//
// A thin factor of `count` rows and `rank` columns is worked on transposed: one contiguous plane a
// column, so that a vector holds entries of one column.
#pragma once

#include <cstddef>
#include <span>

#include "core/scratch.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels::cpu {

inline constexpr std::size_t kPlaneGroup = 64;  // elements that inner loops take at a time

// Elements from one plane to the next: room for a whole group that begins at any element, and an
// odd number of groups, since planes that lie a power of two apart share their cache lines' places.
constexpr std::size_t PlaneStride(std::size_t count) {
  return (count / kPlaneGroup + 2) / 2 * 2 * kPlaneGroup + kPlaneGroup;
}

struct Planes {
  float* at;
  std::size_t stride;
};

// The factor as planes in scratch memory; zeros follow each plane up to its stride.
Planes ToPlanes(const Backend& backend, ScratchScope& scope, In factor, std::size_t count,
                std::size_t rank);

// `count` rows of a factor to planes, and from planes.
void FactorToPlanes(const float* factor, std::size_t count, std::size_t rank, Planes planes);
void PlanesToFactor(Planes planes, std::size_t count, std::size_t rank, float* factor);

// Fetches rows into the second cache, in the order of memory, while those before them are worked
// on: loops that take several rows at a time go along too many short pieces for the processor to
// foresee.
class RowsAhead {
 public:
  // The first `cols` elements of rows that lie `stride` apart.
  RowsAhead(const float* rows, std::size_t stride, std::size_t cols)
      : row_(rows), stride_(stride), cols_(cols) {}

  void Fetch(std::size_t groups) {
    for (; groups > 0; --groups) {
      for (std::size_t line = 0; line < kPlaneGroup; line += 64 / sizeof(float))
        __builtin_prefetch(row_ + col_ + line, 0, 2);
      col_ += kPlaneGroup;
      if (col_ >= cols_) row_ += stride_, col_ = 0;
    }
  }

 private:
  const float* row_;
  std::size_t stride_;
  std::size_t cols_;
  std::size_t col_ = 0;
};

bool AllFinite(std::span<const float> values);

// Sum of a[i * a_step] * b[i * b_step] for i < n, ascending, in fp64; then to fp32, saturating.
float WideProduct(const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                  std::size_t n);

// The entry of p transpose(q) of a row of p and plane element j of q.
float OuterEntry(const float* p, Planes q, std::size_t j, std::size_t rank);

// --- what an instruction set is called with

// A part of m: whole runs of columns, but for the matrix's end, and what becomes of them.
struct RightPart {
  const float* x;  // what m is to grow by first; null for nothing
  float* m;        // read only without x
  std::size_t m_stride;
  std::size_t rows;
  std::size_t cols;
  Planes q;  // from the first of the columns on
  std::size_t rank;
  float* sums;  // of run k of row i, and plane r: at i * sums_stride + k * rank + r
  std::size_t sums_stride;
};

// Some columns of m, all of its rows, and their sums.
struct ColumnTile {
  const float* m;
  std::size_t m_stride;
  std::size_t rows;
  std::size_t cols;
  std::size_t before;  // columns of m before the tile
  const float* p;
  std::size_t rank;
  Planes sums;  // room for whole groups
};

// Rows of the product, and what becomes of its entries; null for what is not wanted.
struct OuterRows {
  const float* p;
  Planes q;
  std::size_t rank;
  std::size_t rows;
  std::size_t cols;
  float* set;  // = entry
  float* add;  // += weight * entry
  float weight;
  bool stream;  // `set` goes past the caches
};

}  // namespace slimgrad::kernels::cpu
