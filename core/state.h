// What a compressor remembers about one tensor from step to step: an ordinary struct that lists its
// lasting fields once. Saving, loading, sizing and comparing follow from that list. Field sizes are
// fixed when the state is made.
//
//   struct State {
//     Buffer<float> residual;     // lasting: listed
//     Buffer<float> corrected;    // needed within a step only: not listed
//     void Fields(FieldVisitor& visit) { visit("residual", residual); }
//   };
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/buffer.h"
#include "core/check.h"
#include "core/dtype.h"

namespace slimgrad {

class State;

// Meets each lasting field as named, typed memory. Names of nested states are joined with '/':
// "inner/residual".
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  template <class T>
  void operator()(std::string_view name, Buffer<T>& field) {
    Field(Path(name), kDTypeOf<T>, std::as_writable_bytes(field.span()), field.memory());
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(std::string_view name, T& scalar) {
    Field(Path(name), kDTypeOf<T>, std::as_writable_bytes(std::span(&scalar, 1)), HostMemory());
  }
  void operator()(std::string_view name, State& nested);

 protected:
  // `bytes` lie in `memory`.
  virtual void Field(const std::string& path, DType dtype, std::span<std::byte> bytes,
                     Memory& memory) = 0;

 private:
  std::string Path(std::string_view name) const { return prefix_ + std::string(name); }
  std::string prefix_;
};

// Owns one tensor's state of any compressor. Move-only.
class State {
 public:
  State() = default;
  template <class T>
  requires(!std::same_as<T, State>) explicit State(T value)
      : box_(std::make_unique<Box<T>>(std::move(value))) {}

  // The T inside; CHECKs that there is one. A State is its own inside, so a wrapper that only picks
  // among compressors needs no state of its own.
  template <class T>
  T& As() {
    if constexpr (std::same_as<T, State>) {
      return *this;
    } else {
      auto* box = dynamic_cast<Box<T>*>(box_.get());
      SLIMGRAD_CHECK(box != nullptr);
      return box->value;
    }
  }

  void Fields(FieldVisitor& visit) {
    if (box_) box_->Fields(visit);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void Fields(FieldVisitor& visit) = 0;
  };
  template <class T>
  struct Box final : Base {
    explicit Box(T v) : value(std::move(v)) {}
    void Fields(FieldVisitor& visit) override { value.Fields(visit); }
    T value;
  };
  std::unique_ptr<Base> box_;
};

// Bytes of all lasting fields.
std::size_t StateBytes(State& state);

}  // namespace slimgrad
