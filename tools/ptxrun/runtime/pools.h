// Memory pools. All of them are the device's one allocator; a pool has attributes only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>

namespace ptxrun {

struct Pool {
  int device = 0;
  std::map<cudaMemPoolAttr, std::uint64_t> attributes;  // those that were set
};

}  // namespace ptxrun
