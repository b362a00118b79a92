// Set-up from the environment, and the report at the program's end.
#include "tools/ptxrun/runtime/process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace ptxrun {
namespace {

ptx::Options OptionsFromEnvironment() {
  ptx::Options options;
  options.order = EnvironmentNumber("PTXRUN_ORDER", 0);
  options.seed = static_cast<std::uint64_t>(EnvironmentNumber("PTXRUN_SEED", 1));
  options.race = EnvironmentNumber("PTXRUN_RACE", 1) != 0;
  options.stats = EnvironmentNumber("PTXRUN_STATS", 0) != 0;
  options.window = std::max(1, EnvironmentNumber("PTXRUN_BLOCKS", 3));
  options.reverse_blocks = Environment("PTXRUN_REVERSE_BLOCKS") != nullptr;
  // 64 bits, unlike the others.
  if (const char* limit = Environment("PTXRUN_LIMIT"))
    options.limit = std::strtoull(limit, nullptr, 0);
  return options;
}

void PrintNotes(ptx::Machine& device) {
  for (const std::string& note : device.notes) {
    const std::string counted = note.substr(0, note.find(" (first"));
    Complain("%s x%d", note.c_str(), device.note_counts[counted]);
  }
}

void PrintHistogram(const ptx::Machine& device) {
  for (const auto& [instruction, count] : device.histogram)
    std::fprintf(stderr, "%12llu %s\n", static_cast<unsigned long long>(count),
                 instruction.c_str());
}

void PrintSummary(const Process& process, std::size_t notes) {
  std::uint64_t instructions = 0;
  std::size_t leaked_bytes = 0;
  for (const auto& device : process.devices) {
    instructions += device->instructions;
    leaked_bytes += process.live_bytes[static_cast<std::size_t>(device->device)];
  }
  const double seconds = process.kernel_seconds;
  const double rate = seconds > 0 ? static_cast<double>(instructions) / seconds / 1e6 : 0;
  Complain(
      "%llu launches, %llu threads, %llu instructions, %.2f s, %.1f M instr/s, %zu notes, "
      "%zu bytes leaked",
      static_cast<unsigned long long>(process.launches),
      static_cast<unsigned long long>(process.threads),
      static_cast<unsigned long long>(instructions), seconds, rate, notes, leaked_bytes);
}

}  // namespace

Process::Process()
    : verbose(Environment("PTXRUN_V") != nullptr),
      no_abort(Environment("PTXRUN_NOABORT") != nullptr) {
  ptx::device_count = std::clamp(EnvironmentNumber("PTXRUN_DEVICES", 1), 1, ptx::kMaxDevices);
  for (int number = 0; number < ptx::device_count; ++number) {
    auto device = std::make_unique<ptx::Machine>();
    device->device = number;
    device->options = OptionsFromEnvironment();
    devices.push_back(std::move(device));
  }
}

Process::~Process() {
  std::size_t notes = 0;
  for (const auto& device : devices) {
    PrintNotes(*device);
    if (device->options.stats) PrintHistogram(*device);
    notes += device->notes.size();
  }
  if (Environment("PTXRUN_SUMMARY") != nullptr) PrintSummary(*this, notes);
  if (notes > 0 && !no_abort) Quit(kExitNotes);
}

Process& TheProcess() {
  static Process process;
  return process;
}

HostThread& ThisThread() {
  thread_local HostThread thread;
  return thread;
}

int DeviceCount() {
  TheProcess();  // whose making counts them
  return ptx::device_count;
}

bool IsDevice(int device) { return device >= 0 && device < DeviceCount(); }

cudaError_t Record(cudaError_t error) {
  if (error != cudaSuccess) ThisThread().last_error = error;
  return error;
}

const char* Environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread of ours sets any
}

int EnvironmentNumber(const char* name, int otherwise) {
  const char* text = Environment(name);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

void Complain(const char* format, ...) {
  std::fputs("[ptxrun] ", stderr);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
}

void Quit(ExitStatus status) {
  std::fflush(stdout);
  _exit(status);
}

}  // namespace ptxrun
