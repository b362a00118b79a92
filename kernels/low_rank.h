// Fixed-order products with a tall, thin factor, for low-rank compression. All matrices are row-major and dense.
//
// m is rows x cols, p is rows x rank, q is cols x rank; rank <= min(rows, cols) (CHECKed, as are the spans' lengths).
// Products: each fp32 product rounded, then summed in fp32 as stated. Where a sum is not finite although its factors are,
// it is formed again in fp64 in the same order and saturates at the largest finite fp32.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/backend.h"

#include "core/random.h"

namespace slimgrad::kernels {

// p = m q. Sum over a row: LaneSum (kernels/sums.h) of the products.
void MultiplyRight(const Backend& backend, In m, std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p);

// q = transpose(m) p. Sum over rows in ascending order, one accumulator an entry, starting at +0.
void MultiplyLeft(const Backend& backend, In m, std::size_t rows, std::size_t cols, In p, std::size_t rank, Out q);

// m = m + weight * (p transpose(q)); the products of one entry are added in ascending order of the rank index, first.
void AddOuter(const Backend& backend, In p, In q, std::size_t rows, std::size_t cols, std::size_t rank, float weight,
              Out m);

// Makes the columns of the rows x rank matrix p orthonormal, in order (Gram-Schmidt done twice, in fp64, then rounded).
// A column that is zero, or depends on those before it to within 2^-20 of its length, is replaced by a random direction
// (Uniform(key, element) - 0.5) made orthonormal likewise: the result is always a basis, also for p = 0.
void Orthonormalize(const Backend& backend, std::size_t rows, std::size_t rank, const RandomKey& key, Out p);

namespace ref {
void MultiplyRight(const Backend& backend, In m, std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p);
void MultiplyLeft(const Backend& backend, In m, std::size_t rows, std::size_t cols, In p, std::size_t rank, Out q);
void AddOuter(const Backend& backend, In p, In q, std::size_t rows, std::size_t cols, std::size_t rank, float weight,
              Out m);
void Orthonormalize(const Backend& backend, std::size_t rows, std::size_t rank, const RandomKey& key, Out p);
}  // namespace ref

namespace cpu {
void MultiplyRight(const Backend& backend, In m, std::size_t rows, std::size_t cols, In q, std::size_t rank, Out p);
void MultiplyLeft(const Backend& backend, In m, std::size_t rows, std::size_t cols, In p, std::size_t rank, Out q);
void AddOuter(const Backend& backend, In p, In q, std::size_t rows, std::size_t cols, std::size_t rank, float weight,
              Out m);
void Orthonormalize(const Backend& backend, std::size_t rows, std::size_t rank, const RandomKey& key, Out p);
}  // namespace cpu

}  // namespace slimgrad::kernels
