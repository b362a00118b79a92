// An operation whose time is taken, and what makes one for every choice of data and size.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/data.h"
#include "benchmarks/values.h"
#include "core/check.h"
#include "core/tensor.h"
#include "kernels/backend.h"

namespace slimgrad::benchmarks {

struct Quality {
  std::uint64_t wrong = 0;       // words of output that differ from ref's
  std::size_t output_bytes = 0;  // 0: nothing is sent
  double rel_error = std::numeric_limits<double>::quiet_NaN();  // NaN: nothing is decoded
};

// One operation with its memory.
class Case {
 public:
  Case() = default;
  virtual ~Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  // The timed part, once; `turn` picks the buffers.
  virtual void Run(const Backend& backend, std::size_t turn) = 0;

  // Runs on the first buffers and compares with ref, which runs on one thread. Called before the
  // first timed run.
  virtual Quality Check(const Backend& backend) = 0;
};

struct Operation {
  std::string name;
  bool has_data = true;  // false: its time does not depend on the values, so all are one
  std::function<std::unique_ptr<Case>(Data data, std::size_t n)> make;
};

// An operation of class C, made from data, n and `arguments`.
template <class C, class... Arguments>
Operation Make(std::string name, Arguments... arguments) {
  return {std::move(name), true, [=](Data data, std::size_t n) {
            return std::make_unique<C>(InputsOf(data, n), n, arguments...);
          }};
}

// One file a family.
using Operations = std::vector<Operation>;
void AddCeilings(Operations& operations);
void AddConvert(Operations& operations);
void AddElementwise(Operations& operations);
void AddFloat8(Operations& operations);
void AddLowRank(Operations& operations);
void AddQuantize(Operations& operations);
void AddSelect(Operations& operations);
void AddSign(Operations& operations);

// Elements that differ in a bit; of equally many.
template <class T>
std::uint64_t Differing(std::span<T> found, std::span<T> expected) {
  SLIMGRAD_CHECK(found.size() == expected.size());
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    count += std::memcmp(&found[i], &expected[i], sizeof(T)) != 0;
  return count;
}

}  // namespace slimgrad::benchmarks
