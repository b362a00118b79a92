// Private to the cuda kernels: the runtime's idea of a current device.
#pragma once

#include <cuda_runtime.h>

namespace slimgrad {

// Makes a device the calling thread's current one, and puts back what was. What fails here fails
// the call that follows, whose error is looked at.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    cudaGetDevice(&before_);
    cudaSetDevice(ordinal);
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace slimgrad
