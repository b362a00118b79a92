// bfloat16: the range of fp32, 7 bits of mantissa. Rounds to nearest, ties to even.
#include "compressors/half.h"

namespace slimgrad {
namespace {

SLIMGRAD_METHOD(bf16) {
  return {.summary = "dense bf16, averaged in fp32",
          .reference = "Kalamkar et al. 2019, A Study of BFLOAT16",
          .parameters = {OverflowParameter()},
          .example = "bf16",
          .make = [](const Arguments& a) -> Result<Compressor> {
            return Compressor(HalfCodec<BF16Kernels>{OverflowOf(a)});
          }};
}

}  // namespace
}  // namespace slimgrad
