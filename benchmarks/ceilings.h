// Loops that move memory and do next to nothing with it: the least time that a kernel with the same
// reads and writes can take. Same threads, same tasks and same instruction sets as the kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::benchmarks {

// What is moved, in bits an element. With a residual, 32 bits more are read and written in place.
struct Traffic {
  std::string_view name;  // bytes an element: r read, w written
  int read_bits;          // 0 ... 32; 32 with a residual
  int write_bits;         // 0 ... 32; divides read_bits or is a multiple of it
  bool residual = false;

  constexpr int BitsMoved() const { return read_bits + write_bits + (residual ? 64 : 0); }
};

inline constexpr std::array kTraffics = {
    Traffic{"r4", 32, 0},         Traffic{"r4w4", 32, 32},        Traffic{"r4w2", 32, 16},
    Traffic{"r4w1", 32, 8},       Traffic{"r4w0.5", 32, 4},       Traffic{"r4w0.125", 32, 1},
    Traffic{"r2w4", 16, 32},      Traffic{"r1w4", 8, 32},         Traffic{"r0.5w4", 4, 32},
    Traffic{"r0.125w4", 1, 32},   Traffic{"r8w4", 32, 0, true},   Traffic{"r8w6", 32, 16, true},
    Traffic{"r8w5", 32, 8, true}, Traffic{"r8w4.5", 32, 4, true}, Traffic{"r8w4.125", 32, 1, true},
};

// Which of these is the fastest depends on the machine and on n; the ceiling is the best one.
struct Variant {
  std::string_view name;
  bool stream;    // `out` is written past the caches; the residual never is
  bool prefetch;  // the lines to be read soon are asked for
};

inline constexpr std::array kVariants = {
    Variant{"plain", false, false},
    Variant{"prefetch", false, true},
    Variant{"stream", true, false},
    Variant{"stream_prefetch", true, true},
};

// Whole groups of this many elements are moved, the rest is left out.
inline constexpr std::size_t kCeilingGroup = 512;

// `in` has read_bits / 8 bytes an element, `out` write_bits / 8; aligned to 64 bytes.
void MoveMemory(const Backend& backend, const Traffic& traffic, const Variant& variant,
                std::size_t n, std::span<const std::byte> in, Out residual,
                std::span<std::byte> out);

}  // namespace slimgrad::benchmarks
