// IEEE 754 binary16: 10 bits of mantissa, largest value 65504. Rounds to nearest, ties to even.
#include "compressors/half.h"

namespace slimgrad {
namespace {

SLIMGRAD_METHOD(fp16) {
  return {.summary = "dense fp16, averaged in fp32",
          .reference = "IEEE 754-2019, binary16; Horovod Compression.fp16",
          .parameters = {OverflowParameter()},
          .example = "fp16",
          .make = [](const Arguments& a) -> Result<Compressor> {
            return Compressor(HalfCodec<F16Kernels>{OverflowOf(a)});
          }};
}

}  // namespace
}  // namespace slimgrad
