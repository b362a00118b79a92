// In place of cuda_stream.cc where there is no CUDA toolkit.
#include "kernels/cuda_stream.h"

namespace slimgrad {

Result<std::unique_ptr<CudaStream>> CudaStream::Open(int, void*) {
  return Unsupported("CUDA: expected a build with a CUDA toolkit, found one without");
}

}  // namespace slimgrad
