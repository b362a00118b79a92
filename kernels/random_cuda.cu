// Bytes a number: 2, written once. A thread draws a block of the stream, which is 8 numbers.
#include "kernels/cuda_pack.cuh"
#include "kernels/cuda_philox.cuh"
#include "kernels/random.h"

namespace slimgrad::kernels::cuda {
namespace {

// Number i of the stream to to[i - first], for i in [first, first + n), by blocks of the stream.
// kPacked: whole blocks lie at multiples of 16 bytes.
template <bool kPacked>
__global__ void RandomKernel(Guard guard, RandomKey key, std::uint64_t first, std::size_t n,
                             std::uint64_t blocks, std::uint16_t* to) {
  if (guard.Closed()) return;
  for (std::size_t b = FirstItem(); b < blocks; b += ItemStride()) {
    const std::uint64_t block = first / kPhilox16s + b;
    const PhiloxBits bits = cuda::Philox(key, block);
    const std::size_t at = block * kPhilox16s - first;  // wraps around in the first block
    const bool whole = at < n && n - at >= kPhilox16s;
    if (kPacked && whole) {
      StorePack(Pack<std::uint32_t, 4>{{bits.word[0], bits.word[1], bits.word[2], bits.word[3]}},
                reinterpret_cast<std::uint32_t*>(to + at));
    } else {
      for (std::size_t k = 0; k < kPhilox16s; ++k)
        if (at + k < n) to[at + k] = static_cast<std::uint16_t>(bits.Random16(k));
    }
  }
}

}  // namespace

void FillRandom16(const Backend& backend, const RandomKey& key, std::uint64_t first,
                  std::span<std::uint16_t> to) {
  if (to.empty()) return;
  const std::uint64_t last = first + (to.size() - 1);  // first + to.size() may be 2^64
  const std::uint64_t blocks = last / kPhilox16s - first / kPhilox16s + 1;
  const std::size_t head = (kPhilox16s - first % kPhilox16s) % kPhilox16s;
  Launch(backend, "random numbers", BlocksFor(backend, blocks, kThreads), kThreads,
         Aligned(to.data() + head) ? RandomKernel<true> : RandomKernel<false>, key, first,
         to.size(), blocks, to.data());
}

}  // namespace slimgrad::kernels::cuda
