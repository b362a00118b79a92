// A method's parameters: name, type, default and range, checked before the method sees a value.
//
//   .parameters = {
//       Real("ratio").Default(0.01).Above(0).AtMost(1).Doc("share of the elements to keep"),
//       Integer("k").AtLeast(1).InsteadOf("ratio").Doc("elements to keep")}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compressors/api/compressor.h"

namespace slimgrad {

class Parameter {
 public:
  enum class Type : std::uint8_t { kReal, kInteger, kChoice, kCompressor };

  // A parameter without a default must be given, unless it is InsteadOf another one.
  Parameter&& Default(double value) &&;
  Parameter&& Default(std::string_view choice_or_spec) &&;
  Parameter&& AtLeast(double bound) &&;
  Parameter&& Above(double bound) &&;
  Parameter&& AtMost(double bound) &&;
  // Given, it takes the place of `other`, which then has no value; both at once are refused.
  Parameter&& InsteadOf(std::string_view other) &&;
  Parameter&& Doc(std::string_view text) &&;

  const std::string& name() const { return name_; }
  Type type() const { return type_; }
  const std::string& default_text() const { return default_; }  // canonical; empty: none
  const std::string& instead_of() const { return instead_of_; }
  const std::string& doc() const { return doc_; }
  const std::vector<std::string>& choices() const { return choices_; }

  // What is allowed, for messages and listings: "a number in (0, 1]", "an integer >= 1", "nearest
  // or stochastic".
  std::string Domain() const;

  // The value that `text` means, or nothing where it lies outside of the domain. Not for
  // kCompressor.
  std::optional<double> ParseReal(std::string_view text) const;
  std::optional<std::int64_t> ParseInteger(std::string_view text) const;
  bool HasChoice(std::string_view text) const;

 private:
  friend Parameter Real(std::string_view name);
  friend Parameter Integer(std::string_view name);
  friend Parameter Choice(std::string_view name, std::vector<std::string> choices);
  friend Parameter CompressorParameter(std::string_view name);
  Parameter(std::string_view name, Type type) : name_(name), type_(type) {}
  bool InRange(double value) const;

  std::string name_;
  Type type_;
  std::string default_, instead_of_, doc_;
  std::optional<double> at_least_, above_, at_most_;
  std::vector<std::string> choices_;
};

Parameter Real(std::string_view name);
Parameter Integer(std::string_view name);
Parameter Choice(std::string_view name, std::vector<std::string> choices);
Parameter CompressorParameter(std::string_view name);

// The checked values that a method is made from. Asking for what the method has not declared is a
// CHECK failure.
class Arguments {
 public:
  using Value = std::variant<double, std::int64_t, std::string, Compressor>;

  bool Has(std::string_view name) const { return values_.contains(std::string(name)); }
  double Real(std::string_view name) const { return std::get<double>(At(name)); }
  std::int64_t Integer(std::string_view name) const { return std::get<std::int64_t>(At(name)); }
  std::size_t Size(std::string_view name) const { return static_cast<std::size_t>(Integer(name)); }
  const std::string& Choice(std::string_view name) const { return std::get<std::string>(At(name)); }
  const Compressor& Child(std::string_view name) const { return std::get<Compressor>(At(name)); }

  // The compressor that a wrapper wraps.
  const Compressor& inner() const { return *inner_; }

  void Set(std::string name, Value value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  void SetInner(Compressor inner) { inner_ = std::move(inner); }

 private:
  const Value& At(std::string_view name) const;

  std::map<std::string, Value> values_;
  std::optional<Compressor> inner_;
};

// Shortest text that reads back as the same number.
std::string NumberText(double value);

}  // namespace slimgrad
