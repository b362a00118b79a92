"""Faults of kernels on GPUs, for cuda_test: skipped, and so not caught, where there is no CUDA."""

KERNELS = "//tests/kernels:"


def cuda(family):
    """The family's test in the three orders of threads."""
    return tuple(f"{KERNELS}{family}_test_cuda{order}" for order in ("", "_reverse", "_random"))


# (file, what it breaks, text, what takes its place, targets)
CUDA_FAULTS = (
    ("kernels/cuda_pack.cuh", "a tail one element too long",
     "if (kPacked && rest < n)", "if (kPacked && rest <= n)", cuda("convert")),
    ("kernels/cuda_launch.cuh", "counts half of each warp",
     "__reduce_add_sync(~0U, count)", "__reduce_add_sync(0xFFFFU, count)", cuda("convert")),
    ("kernels/cuda_convert.cuh", "works behind a closed guard",
     "\n                             std::uint64_t* overflowed) {\n  if (guard.Closed()) return;",
     "\n                             std::uint64_t* overflowed) {",
     cuda("elementwise") + cuda("convert")),
    ("kernels/cuda_half.cuh", "a NaN becomes the hardware's",
     "if (IsNan(x)) return sign | Format::kQuietNan;", "", cuda("convert")),
    ("kernels/float8_cuda.cu", "rounds subnormals as if they were normal",
     "max(magnitude & kF32Infinity, kLeastNormal);", "magnitude & kF32Infinity;", cuda("float8")),
    ("kernels/sign_cuda.cu", "a missing barrier before the sums of a tile",
     "  __syncthreads();\n  SumBlocks<kTwo>(tiles, p, count, levels);",
     "  SumBlocks<kTwo>(tiles, p, count, levels);", cuda("sign")),
    ("kernels/sign_cuda.cu", "a race of the levels with their first readers",
     "  SumBlocks<kTwo>(tiles, p, count, levels);\n  __syncthreads();",
     "  SumBlocks<kTwo>(tiles, p, count, levels);", cuda("sign")),
    ("kernels/cuda_lane_sum.cuh", "joins the lanes in another order",
     "  T sum = low + high;\n  for (unsigned width = group / 2; width > 0; width /= 2)\n"
     "    sum += __shfl_down_sync(~0U, sum, width, group);",
     "  T sum = low + high;\n  for (unsigned width = 1; width < group; width *= 2)\n"
     "    sum += __shfl_down_sync(~0U, sum, width, group);", cuda("sign")),
    ("kernels/quantize_cuda.cu", "a missing barrier after the warps' magnitudes",
     "= top;\n  __syncthreads();", "= top;", cuda("quantize_reference")),
    ("kernels/qsgd_cuda.cu", "only some threads of a tile form its norm again",
     "if (__syncthreads_or(any)) wide =", "if (any) wide =", cuda("qsgd")),
    ("kernels/sums_cuda.cu", "adds the runs from the last to the first",
     "for (std::size_t run = 0; run < runs; ++run) total += sums[run];",
     "for (std::size_t run = runs; run-- > 0;) total += sums[run];", cuda("sums")),
    ("kernels/cuda_philox.cuh", "draws the halves of a word in the other order",
     "(16 * (i % 2))", "(16 * ((i + 1) % 2))", cuda("random")),
    ("kernels/scatter_cuda.cu", "writes at indices that were found wrong",
     "  const bool refused = verdicts.Any();", "  const bool refused = verdicts.Any() && false;",
     cuda("scatter")),
    ("kernels/scatter_cuda.cu", "a missing barrier after the tile is cleared",
     "tile[i] = 0.0F;\n  __syncthreads();", "tile[i] = 0.0F;", cuda("scatter")),
    ("kernels/combine_cuda.cu", "the addresses of later ranks lie over those of the first",
     "           table + first);", "           table);", cuda("combine")),
    ("kernels/low_rank_left_cuda.cu", "a race of the next rows with those that are added",
     "    __syncthreads();\n  }\n  for (int k = 0; k < 2; ++k) {\n    const std::size_t at",
     "  }\n  for (int k = 0; k < 2; ++k) {\n    const std::size_t at", cuda("low_rank")),
    ("kernels/index_code_cuda.cu", "accepts a code that ends within a gap",
     "return {false, p + 1 == size, 0};", "return {false, false, 0};", cuda("index_code")),
    ("kernels/select_write_cuda.cu", "takes one tie too many",
     "if (tie && before.ties >= cut.ties) return;", "if (tie && before.ties > cut.ties) return;",
     cuda("select")),
    ("kernels/cuda_block.cuh", "a race on a block's sums",
     "  __syncthreads();  // the last call's sums are read\n", "", cuda("index_code")),
    ("kernels/stamps_cuda.cu", "misses a wrong byte behind the first warp",
     "      threadIdx.x < stamp.size && frame",
     "      threadIdx.x < min(stamp.size, std::size_t{32}) && frame", cuda("stamps")),
)
