// What all calls of one process share: devices, loaded modules, allocations, streams, captures,
// and what the environment asked for. And the little that each host thread has of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/ptxrun/machine/machine.h"
#include "tools/ptxrun/ptx/module.h"

namespace ptxrun {

struct Capture;
struct Stream;

// What the program's exit status says once ptxrun has ended it. Documented in README.md.
enum ExitStatus : int {
  kExitNotes = 96,
  kExitUnreadablePtx = 97,
  kExitCompressedPtx = 98,
  kExitFault = 99,
};

struct Allocation {
  std::size_t bytes;
  int device;
  bool host;  // within reach of every device
};

// Freed blocks rest here before the C library has them back: a late use then meets a range that
// belongs to nobody instead of the next allocation.
struct Quarantine {
  std::deque<std::pair<void*, std::size_t>> blocks;
  std::size_t bytes = 0;
};

struct Process {
  Process();
  // Prints the notes and the counts; with notes, ends the program with kExitNotes.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Guards all that follows. Recursive: the end of a failed capture destroys its graph, and that
  // frees the memory that was captured with it.
  std::recursive_mutex mutex;

  std::vector<std::unique_ptr<ptx::Machine>> devices;
  std::vector<std::unique_ptr<ptx::Module>> modules;
  // Found by the address that the host's code has for them.
  std::unordered_map<const void*, ptx::Function*> kernels;
  std::unordered_map<const void*, ptx::Symbol*> variables;

  std::map<void*, Allocation> allocations;
  std::array<std::size_t, ptx::kMaxDevices> live_bytes = {};
  Quarantine quarantine;

  std::set<Stream*> streams;
  std::set<std::shared_ptr<Capture>> captures;

  int sm = 75;  // of the newest PTX in use: sm_75
  double kernel_seconds = 0;

  std::atomic<std::uint64_t> launches = 0;
  std::atomic<std::uint64_t> threads = 0;
  std::atomic<std::uint64_t> next_id = 100;  // of streams and captures
  // A fault's error stays until cudaDeviceReset; seen with PTXRUN_NOABORT only.
  std::atomic<cudaError_t> sticky_error = cudaSuccess;

  bool verbose = false;
  bool no_abort = false;
};

// Made by the first call, which nvcc's code makes before main().
Process& TheProcess();

struct HostThread {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};

HostThread& ThisThread();

int DeviceCount();
bool IsDevice(int device);

// Makes an error the thread's last error; returns it.
cudaError_t Record(cudaError_t error);

// The value of an environment variable; null where it is missing.
const char* Environment(const char* name);

// The number in an environment variable, or `otherwise` where it is missing or empty.
int EnvironmentNumber(const char* name, int otherwise);

// A line on stderr that starts with "[ptxrun] ".
[[gnu::format(printf, 1, 2)]] void Complain(const char* format, ...);

// Ends the program at once: no destructor of a program in an unknown state runs.
[[noreturn]] void Quit(ExitStatus status);

}  // namespace ptxrun
