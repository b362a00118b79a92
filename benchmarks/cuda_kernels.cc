// The kernels on a GPU, each beside a copy within the device that moves as many bytes.
//
//   cuda_kernels --elements 1048576,16777216 --rounds 9 --json FILE --table FILE
//
// In each round, every kernel and its copy take turns, some launches at a time between two events;
// times are medians over the rounds. "of copy" is the copy's time / the kernel's: 1 is the speed of
// memory. Outputs are compared with the CPU's first, on the smallest size; exit status 1 where they
// differ.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/cuda_operations.h"
#include "kernels/cuda_stream.h"

namespace slimgrad::benchmarks {
namespace {

struct Options {
  std::vector<std::size_t> elements = {std::size_t{1} << 20, std::size_t{1} << 24,
                                       std::size_t{1} << 26, std::size_t{1} << 28};
  int rounds = 9;
  double least_ms = 2;  // of launches between two events
  std::string json, table;
};

struct Row {
  std::string name;
  std::size_t n;
  double bytes;  // moved, an element
  double ms, copy_ms;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Ends the program: a time beside an error means nothing.
void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::cerr << "cuda_kernels: " << what << ": " << cudaGetErrorString(error) << "\n";
  std::exit(1);
}

// Milliseconds of device time between two points of a stream.
class Timer {
 public:
  explicit Timer(CudaStream& stream) : stream_(stream) {
    Check(cudaEventCreate(&begin_), "cudaEventCreate");
    Check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  double Of(const std::function<void()>& run, int times) {
    const auto handle = static_cast<cudaStream_t>(stream_.handle());
    Check(cudaEventRecord(begin_, handle), "cudaEventRecord");
    for (int i = 0; i < times; ++i) run();
    Check(cudaEventRecord(end_, handle), "cudaEventRecord");
    Check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float ms = 0;
    Check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(ms) / times;
  }

 private:
  CudaStream& stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// As many bytes read and written as the kernel moves.
class DeviceCopy {
 public:
  DeviceCopy(CudaStream& stream, std::size_t bytes)
      : stream_(stream),
        from_(std::max<std::size_t>(16, bytes / 2), stream.memory()),
        to_(from_.size(), stream.memory()) {}
  void Run() {
    Check(cudaMemcpyAsync(to_.data(), from_.data(), from_.size(), cudaMemcpyDeviceToDevice,
                          static_cast<cudaStream_t>(stream_.handle())),
          "cudaMemcpyAsync");
  }

 private:
  CudaStream& stream_;
  Buffer<std::byte> from_, to_;
};

int TimesFor(double ms, double least_ms) {
  return std::clamp(static_cast<int>(least_ms / std::max(ms, 1e-4)), 1, 200);
}

Row Measure(CudaStream& stream, const CudaOperation& operation, std::size_t n,
            const Options& options) {
  CudaCase running(operation, n, stream);
  DeviceCopy copy(stream, static_cast<std::size_t>(operation.bytes * static_cast<double>(n)));
  Timer timer(stream);
  const std::function<void()> run = [&] { running.Run(); };
  const std::function<void()> move = [&] { copy.Run(); };
  run();
  move();
  const int times = TimesFor(timer.Of(run, 1), options.least_ms);
  const int copies = TimesFor(timer.Of(move, 1), options.least_ms);
  std::vector<double> run_ms, copy_ms;
  for (int round = 0; round < options.rounds; ++round) {
    run_ms.push_back(timer.Of(run, times));
    copy_ms.push_back(timer.Of(move, copies));
  }
  return {operation.name, n, operation.bytes, Median(run_ms), Median(copy_ms)};
}

double GigabytesPerSecond(const Row& row, double ms) {
  return row.bytes * static_cast<double>(row.n) / (ms * 1e6);
}

std::string TableOf(const std::vector<Row>& rows, const cudaDeviceProp& device) {
  std::string text = fmt::format(
      "# Kernels on a GPU, measured\n\nWritten by `tools/gpu_check.sh`; of copy: the time of a "
      "copy "
      "within the device that moves as many bytes / the kernel's.\n\n* GPU: {}, {:.0f} GB, {} "
      "multiprocessors, sm_{}{}\n\n| kernel | elements | bytes an element | time | GB/s | copy's "
      "GB/s | of copy |\n|---|---|---|---|---|---|---|\n",
      device.name, static_cast<double>(device.totalGlobalMem) / 1e9, device.multiProcessorCount,
      device.major, device.minor);
  for (const Row& row : rows)
    text += fmt::format("| {} | {} | {:.4g} | {:.4f} ms | {:.0f} | {:.0f} | {:.2f} |\n", row.name,
                        row.n, row.bytes, row.ms, GigabytesPerSecond(row, row.ms),
                        GigabytesPerSecond(row, row.copy_ms), row.copy_ms / row.ms);
  return text;
}

nlohmann::json JsonOf(const std::vector<Row>& rows, const cudaDeviceProp& device) {
  nlohmann::json all = {{"gpu", device.name}, {"rows", nlohmann::json::array()}};
  for (const Row& row : rows)
    all["rows"].push_back({{"kernel", row.name},
                           {"elements", row.n},
                           {"bytes_per_element", row.bytes},
                           {"ms", row.ms},
                           {"copy_ms", row.copy_ms}});
  return all;
}

bool Write(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::cerr << "cuda_kernels: " << path << ": cannot be written\n";
  return static_cast<bool>(file);
}

// How many operations give other bits than the CPU does.
int CheckAll(CudaStream& stream, const std::vector<CudaOperation>& operations, std::size_t n) {
  int wrong = 0;
  for (const CudaOperation& operation : operations) {
    if (CudaCase(operation, n, stream).MatchesCpu()) continue;
    std::cerr << "cuda_kernels: " << operation.name << ": other bits than the CPU's\n";
    ++wrong;
  }
  return wrong;
}

int Main(const Options& options) {
  const auto stream = CudaStream::Open(0);
  if (!stream.ok()) {
    std::cerr << "cuda_kernels: " << stream.status().message() << "\n";
    return 2;
  }
  const std::vector<CudaOperation> operations = AllCudaOperations();
  const std::size_t smallest = *std::ranges::min_element(options.elements);
  const int wrong = CheckAll(**stream, operations, std::min(smallest, std::size_t{1} << 20));
  cudaDeviceProp device = {};
  Check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::vector<Row> rows;
  for (const std::size_t n : options.elements)
    for (const CudaOperation& operation : operations)
      rows.push_back(Measure(**stream, operation, n, options));
  const Status status = (*stream)->Wait();
  if (!status.ok()) std::cerr << "cuda_kernels: " << status.message() << "\n";
  const std::string table = TableOf(rows, device);
  std::cout << table;
  const bool written =
      Write(options.table, table) && Write(options.json, JsonOf(rows, device).dump(2) + "\n");
  return wrong > 0 || !status.ok() || !written ? 1 : 0;
}

}  // namespace
}  // namespace slimgrad::benchmarks

int main(int argc, char** argv) {
  slimgrad::benchmarks::Options options;
  CLI::App app("The kernels on a GPU, beside copies within the device");
  app.add_option("--elements", options.elements, "sizes")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 31));
  app.add_option("--rounds", options.rounds, "medians over so many")->check(CLI::Range(1, 1000));
  app.add_option("--least_ms", options.least_ms, "of launches between two events");
  app.add_option("--json", options.json, "file to write");
  app.add_option("--table", options.table, "file to write");
  CLI11_PARSE(app, argc, argv);
  return slimgrad::benchmarks::Main(options);
}
