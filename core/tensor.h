// Identity, shape and views of one gradient tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"

namespace slimgrad {

// Name, shape and type of a parameter's gradient; equal on every rank, whatever bucket it travels
// in. A shape of no dimensions is a scalar (one element); a zero in it makes the tensor empty.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::kF32;  // of the gradient at the library's edge: F32, F16 or BF16

  // Elements. CHECKs that the spec is valid: see Validate.
  std::size_t numel() const;

  bool operator==(const TensorSpec&) const = default;
};

// kInvalidArgument unless every extent is >= 0, the tensor's bytes as fp64 fit in 63 bits and the
// dtype is a float's.
Status Validate(const TensorSpec& spec);

// "[2, 3]"
std::string ShapeText(std::span<const std::int64_t> shape);

// What a method reads and writes: fp32 on the context's device, borrowed for the call, any
// alignment of 4.
using In = std::span<const float>;
using Out = std::span<float>;

// Borrowed memory of a float tensor at the library's edge. Methods never see it: the exchange
// converts to fp32.
struct ConstView {
  const void* data = nullptr;
  std::size_t numel = 0;
  DType dtype = DType::kF32;
  Device device = Device::kCpu;

  ConstView() = default;
  ConstView(const void* d, std::size_t n, DType t, Device where)
      : data(d), numel(n), dtype(t), device(where) {}
  ConstView(In values) : data(values.data()), numel(values.size()) {}  // NOLINT: a span is a view

  template <class T>
  std::span<const T> As() const {
    SLIMGRAD_CHECK(dtype == kDTypeOf<T>);
    return {static_cast<const T*>(data), numel};
  }
};

struct View {
  void* data = nullptr;
  std::size_t numel = 0;
  DType dtype = DType::kF32;
  Device device = Device::kCpu;

  View() = default;
  View(void* d, std::size_t n, DType t, Device where)
      : data(d), numel(n), dtype(t), device(where) {}
  View(Out values) : data(values.data()), numel(values.size()) {}  // NOLINT: a span is a view

  template <class T>
  std::span<T> As() const {
    SLIMGRAD_CHECK(dtype == kDTypeOf<T>);
    return {static_cast<T*>(data), numel};
  }
};

}  // namespace slimgrad
