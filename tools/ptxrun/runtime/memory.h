// Memory of devices, and of the host where devices reach it. All is the process's own: what
// a pointer belongs to is looked up, so that wrong copies are refused.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace ptxrun {

enum class Owner { kDevice, kHost };

// Memory with a pattern in it. No bytes: a null pointer.
cudaError_t Allocate(void** pointer, std::size_t bytes, int device, Owner owner);

cudaError_t Free(void* pointer);

enum class Place { kDevice, kAnywhere };

// Whether a range is inside one allocation, or (kAnywhere) starts in none: ordinary host memory.
bool IsInside(const void* begin, std::size_t bytes, Place place);

cudaError_t CheckCopy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t Copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

}  // namespace ptxrun
