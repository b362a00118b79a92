// Every compressor, wrapper and recoder registers itself under its name; MakeCompressor builds one
// from a spec string. A method is one file, compressors/<name>.cc:
//
//   SLIMGRAD_METHOD(top_k) {
//     return {.summary = "the k elements of largest magnitude",
//             .reference = "Aji & Heafield 2017",
//             .parameters = {Real("ratio").Default(0.01).Above(0).AtMost(1).Doc("...")},
//             .example = "top_k(ratio=0.01)",
//             .make = [](const Arguments& a) -> Result<Compressor> {
//               return Compressor(TopK{a.Real("ratio")});
//             }};
//   }
//
// Threads: registration ends before main; afterwards everything here is read-only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compressors/api/compressor.h"
#include "compressors/api/parameter.h"
#include "compressors/api/recoder.h"

namespace slimgrad {

struct Method {
  enum class Kind : std::uint8_t { kCompressor, kWrapper, kRecoder };

  std::string name = {};       // set by registration
  std::string file = {};       // likewise: the source file that registered it
  std::string summary = {};    // half a line
  std::string reference = {};  // paper or specification
  std::vector<Parameter> parameters = {};
  std::string example = {};  // a spec that shows it at work; tests and benchmarks run it

  // Exactly one of the three is set: it tells the kind.
  std::function<Result<Compressor>(const Arguments&)> make = {};
  std::function<Result<Compressor>(const Arguments&)> wrap = {};  // takes arguments.inner() too
  std::function<Result<std::shared_ptr<const Recoder>>(const Arguments&)> recode = {};

  Kind kind() const { return make ? Kind::kCompressor : wrap ? Kind::kWrapper : Kind::kRecoder; }
};

// All methods in alphabetical order.
std::vector<const Method*> Methods();

// Null when there is none of this name.
const Method* FindMethod(std::string_view name);

// The compressor that `spec` names, with spec() set to the canonical text: defaults filled in,
// parameters sorted by name, numbers in their shortest form, no blanks. kInvalidArgument, pointing
// at the character, for anything that is wrong.
Result<Compressor> MakeCompressor(std::string_view spec);

namespace internal {
struct Registrar {
  // CHECKs that the name is new and the method complete.
  Registrar(const char* name, const char* file, Method method);
};
}  // namespace internal

}  // namespace slimgrad

#define SLIMGRAD_METHOD(name)                                                                      \
  static ::slimgrad::Method SlimgradMethod_##name();                                               \
  static const ::slimgrad::internal::Registrar slimgrad_registrar_##name(#name, __FILE__,          \
                                                                         SlimgradMethod_##name()); \
  static ::slimgrad::Method SlimgradMethod_##name()
