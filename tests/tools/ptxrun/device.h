// For the tests of ptxrun: arrays on the device, launches that are waited for, random inputs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <random>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

namespace slimgrad {

// Throws, and so fails the test, for a call of the runtime that was to work.
inline void Check(cudaError_t error, std::source_location where = std::source_location::current()) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                           ": " + cudaGetErrorName(error));
}

template <class T>
class DeviceArray {
 public:
  // With the runtime's own pattern in it.
  explicit DeviceArray(std::size_t size) : size_(size) { Check(cudaMalloc(&data_, bytes())); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { Set(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  void Set(const std::vector<T>& values) {
    Check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  std::vector<T> Get() const {
    std::vector<T> values(size_);
    Check(cudaMemcpy(static_cast<void*>(values.data()), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }
  void Zero() { Check(cudaMemset(data_, 0, bytes())); }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

// Launches in the default stream, and waits.
template <class... Parameters, class... Arguments>
void RunKernel(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
               const Arguments&... arguments) {
  kernel<<<blocks, threads>>>(arguments...);
  Check(cudaGetLastError());
  Check(cudaDeviceSynchronize());
}

inline unsigned BlocksFor(std::size_t elements, unsigned threads) {
  return static_cast<unsigned>((elements + threads - 1) / threads);
}

__device__ inline int GlobalThread() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

inline std::vector<float> NormalFloats(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

inline std::vector<unsigned> RandomWords(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned> words(size);
  for (unsigned& word : words) word = static_cast<unsigned>(random());
  return words;
}

// 0 to below - 1.
inline std::vector<int> RandomInts(std::size_t size, int below, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> values(size);
  for (int& value : values) value = static_cast<int>(random() % static_cast<unsigned>(below));
  return values;
}

}  // namespace slimgrad
