#include "compressors/api/parameter.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace slimgrad {
namespace {

template <class T>
std::optional<T> Parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Parameter Real(std::string_view name) { return {name, Parameter::Type::kReal}; }
Parameter Integer(std::string_view name) { return {name, Parameter::Type::kInteger}; }
Parameter CompressorParameter(std::string_view name) {
  return {name, Parameter::Type::kCompressor};
}
Parameter Choice(std::string_view name, std::vector<std::string> choices) {
  Parameter parameter(name, Parameter::Type::kChoice);
  parameter.choices_ = std::move(choices);
  return parameter;
}

Parameter&& Parameter::Default(double value) && {
  default_ = NumberText(value);
  return std::move(*this);
}
Parameter&& Parameter::Default(std::string_view choice_or_spec) && {
  default_ = choice_or_spec;
  return std::move(*this);
}
Parameter&& Parameter::AtLeast(double bound) && {
  at_least_ = bound;
  return std::move(*this);
}
Parameter&& Parameter::Above(double bound) && {
  above_ = bound;
  return std::move(*this);
}
Parameter&& Parameter::AtMost(double bound) && {
  at_most_ = bound;
  return std::move(*this);
}
Parameter&& Parameter::InsteadOf(std::string_view other) && {
  instead_of_ = other;
  return std::move(*this);
}
Parameter&& Parameter::Doc(std::string_view text) && {
  doc_ = text;
  return std::move(*this);
}

std::string Parameter::Domain() const {
  if (type_ == Type::kChoice) return fmt::format("{}", fmt::join(choices_, " or "));
  if (type_ == Type::kCompressor) return "a compressor";
  const char* what = type_ == Type::kInteger ? "an integer" : "a number";
  const bool low = at_least_ || above_;
  if (low && at_most_)
    return fmt::format("{} in {}{}, {}]", what, above_ ? '(' : '[',
                       NumberText(above_ ? *above_ : *at_least_), NumberText(*at_most_));
  if (at_least_) return fmt::format("{} >= {}", what, NumberText(*at_least_));
  if (above_) return fmt::format("{} > {}", what, NumberText(*above_));
  if (at_most_) return fmt::format("{} <= {}", what, NumberText(*at_most_));
  return what;
}

bool Parameter::InRange(double value) const {
  return std::isfinite(value) && !(at_least_ && value < *at_least_) &&
         !(above_ && value <= *above_) && !(at_most_ && value > *at_most_);
}

std::optional<double> Parameter::ParseReal(std::string_view text) const {
  const auto value = Parse<double>(text);
  return value && InRange(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> Parameter::ParseInteger(std::string_view text) const {
  const auto value = Parse<std::int64_t>(text);
  return value && InRange(static_cast<double>(*value)) ? value : std::nullopt;
}

bool Parameter::HasChoice(std::string_view text) const {
  return std::find(choices_.begin(), choices_.end(), text) != choices_.end();
}

const Arguments::Value& Arguments::At(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  SLIMGRAD_CHECK(it != values_.end());
  return it->second;
}

std::string NumberText(double value) { return fmt::format("{}", value); }

}  // namespace slimgrad
