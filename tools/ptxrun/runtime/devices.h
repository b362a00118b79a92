// What the devices say they are: small, so that what runs here fits any GPU.
#pragma once

#include <cstdint>

namespace ptxrun {

constexpr unsigned kMaxThreads = 1024;  // in a block, and on a multiprocessor
constexpr unsigned kMaxBlockZ = 64;
constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridYZ = 65535;
constexpr int kMaxBlocksAMultiprocessor = 16;
constexpr int kRegisters = 65536;
constexpr int kL2Bytes = 4 << 20;
constexpr int kSharedBytes = 48 << 10;  // in a block, without opting in
constexpr std::uint64_t kMemoryBytes = std::uint64_t{16} << 30;

// In a block of a kernel that opts in, by the architecture of the PTX.
int SharedBytesOptIn();

// How many blocks of so many threads are on a multiprocessor at once.
int BlocksAMultiprocessor(std::uint64_t threads);

}  // namespace ptxrun
