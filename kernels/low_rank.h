// Fixed-order products with a tall, thin factor, for low-rank compression. All matrices are
// row-major and dense.
//
// m is rows x cols, p is rows x rank, q is cols x rank; rank <= min(rows, cols) (CHECKed, as are
// the spans' lengths). The spans of one call do not overlap. Working memory is taken from
// `scratch`: about as much as the factors; of MultiplyRight, p.size() floats more for each 4096
// columns, if there are more than so many.
//
// Sums of products: each fp32 product rounded, then summed in fp32 as stated. A sum that is not
// finite is formed again with products and sums in fp64, in the same order, then rounded to fp32;
// if finite it saturates at the largest finite fp32.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/scratch.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::kernels {

// p = m q. Sum over a row: LaneSum (kernels/sums.h) of the products.
void MultiplyRight(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                   std::size_t cols, In q, std::size_t rank, Out p);

// With error feedback, in one pass: residual = residual + x (AddSaturated, elementwise.h), both
// rows x cols, then p = residual q. The same bits as the two calls.
void MultiplyRightFeedback(const Backend& backend, Scratch& scratch, In x, Out residual,
                           std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p);

// q = transpose(m) p. Sum over rows in ascending order, one accumulator an entry, starting at +0.
void MultiplyLeft(const Backend& backend, Scratch& scratch, In m, std::size_t rows,
                  std::size_t cols, In p, std::size_t rank, Out q);

// m = m + weight * (p transpose(q)): for each entry first the sum of products, over the rank index
// in ascending order, starting at +0; then one multiplication, one addition, which saturates
// (AddSaturated).
void AddOuter(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
              std::size_t cols, std::size_t rank, float weight, Out m);

// m = p transpose(q), whatever it held: the same bits as AddOuter with weight 1 to zeros.
void Outer(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows, std::size_t cols,
           std::size_t rank, Out m);

// Both in one pass: average = p transpose(q), as Outer; residual = residual - p transpose(q), as
// AddOuter with weight -1.
void OuterFeedback(const Backend& backend, Scratch& scratch, In p, In q, std::size_t rows,
                   std::size_t cols, std::size_t rank, Out average, Out residual);

// Makes the columns of the rows x rank matrix p orthonormal, rank <= rows (CHECKed), in order:
// Gram-Schmidt done twice (Giraud et al. 2005), since once loses orthogonality where columns are
// nearly dependent. The steps for a column v, each in fp64 and then rounded to fp32:
//
//   1. normalize, 2. project, 3. normalize, 4. project, 5. normalize
//   normalize  v[i] = v[i] / |v|, |v| = sqrt(LaneSum over rows of v[i] * v[i])
//   project    for groups of up to kProjectColumns earlier columns q, in order:
//              all part_k = LaneSum over rows of q_k[i] * v[i], then
//              v[i] = ((v[i] - part_0 * q_0[i]) - part_1 * q_1[i]) ..., rounded once a group
//
// A column that is zero at 1, or shorter than 2^-20 at 3 (it depends on those before it), is
// replaced by a random direction and starts again at 1:
//
//   v[i] = Uniform(key, attempt * rows * rank + i * rank + column) - 0.5, attempt = 0, 1, ...
//
// until one passes, so the result is always a basis, also for p = 0. p is finite; what is not
// leaves a result that is not.
inline constexpr std::size_t kProjectColumns = 64;

void Orthonormalize(const Backend& backend, Scratch& scratch, std::size_t rows, std::size_t rank,
                    const RandomKey& key, Out p);

SLIMGRAD_KERNEL(MultiplyRight);
SLIMGRAD_KERNEL(MultiplyRightFeedback);
SLIMGRAD_KERNEL(MultiplyLeft);
SLIMGRAD_KERNEL(AddOuter);
SLIMGRAD_KERNEL(Outer);
SLIMGRAD_KERNEL(OuterFeedback);
SLIMGRAD_KERNEL(Orthonormalize);

}  // namespace slimgrad::kernels
