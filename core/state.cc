#include "core/state.h"

namespace slimgrad {

void FieldVisitor::operator()(std::string_view name, State& nested) {
  const std::size_t outer = prefix_.size();
  prefix_ += name;
  prefix_ += '/';
  nested.Fields(*this);
  prefix_.resize(outer);
}

std::size_t StateBytes(State& state) {
  struct Sizer final : FieldVisitor {
    void Field(const std::string&, DType, std::span<std::byte> bytes, Memory&) override {
      total += bytes.size();
    }
    std::size_t total = 0;
  } sizer;
  state.Fields(sizer);
  return sizer.total;
}

}  // namespace slimgrad
