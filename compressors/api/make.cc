// From the tree of a spec to a compressor: names are looked up, parameters checked, the canonical
// text written.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compressors/api/registry.h"
#include "compressors/api/spec.h"

namespace slimgrad {
namespace {

struct Bound {
  Arguments arguments;
  std::string text;  // "top_k(ratio=0.01)"
};

class Maker {
 public:
  explicit Maker(std::string_view text) : text_(text) {}

  // The compressor of `node`, recoders included.
  Result<Compressor> Make(const SpecNode& node) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const Method* method, Find(node));
    if (method->kind() == Method::Kind::kRecoder)
      return Error(
          node.position,
          fmt::format("'{0}' is a recoder: it follows a compressor, as in top_k|{0}", node.name));
    SLIMGRAD_ASSIGN_OR_RETURN(Bound bound, Bind(node, *method));
    Result<Compressor> made = (method->make ? method->make : method->wrap)(bound.arguments);
    if (!made.ok()) return Error(node.position, made.status().message());
    made->set_spec(std::move(bound.text));
    for (const SpecNode& recoder : node.recoders) SLIMGRAD_RETURN_IF_ERROR(Follow(recoder, *made));
    return made;
  }

 private:
  Result<const Method*> Find(const SpecNode& node) const {
    if (const Method* method = FindMethod(node.name)) return method;
    std::vector<std::string> names;
    for (const Method* method : Methods()) names.push_back(method->name);
    return Error(node.position, fmt::format("unknown method '{}'; there are {}", node.name,
                                            fmt::join(names, ", ")));
  }

  // Puts a recoder behind `compressor`.
  Status Follow(const SpecNode& node, Compressor& compressor) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const Method* method, Find(node));
    if (method->kind() != Method::Kind::kRecoder)
      return Error(node.position,
                   fmt::format("'{}' is no recoder: only recoders may follow '|'", node.name));
    SLIMGRAD_ASSIGN_OR_RETURN(const Bound bound, Bind(node, *method));
    auto recoder = method->recode(bound.arguments);
    if (!recoder.ok()) return Error(node.position, recoder.status().message());
    const SectionType from = (*recoder)->from();
    const auto sections =
        compressor.codec() ? compressor.codec()->sections() : std::span<const SectionType>();
    if (std::find(sections.begin(), sections.end(), from) == sections.end())
      return Error(node.position,
                   fmt::format("{} recodes sections {} of {}, which {} does not have", node.name,
                               NameOf(from.tag), NameOf(from.dtype), compressor.spec()));
    Compressor recoded(Recode(*compressor.codec(), std::move(*recoder)));
    recoded.set_spec(compressor.spec() + "|" + bound.text);
    compressor = std::move(recoded);
    return {};
  }

  Result<Bound> Bind(const SpecNode& node, const Method& method) const {
    Bound bound;
    std::vector<std::string> parts;
    SLIMGRAD_RETURN_IF_ERROR(BindInner(node, method, bound.arguments, parts));
    std::map<std::string, std::string> texts;  // parameters sorted by name
    for (const SpecArgument& argument : node.arguments)
      SLIMGRAD_RETURN_IF_ERROR(BindGiven(node, method, argument, bound.arguments, texts));
    SLIMGRAD_RETURN_IF_ERROR(BindDefaults(node, method, bound.arguments, texts));
    for (const auto& [name, text] : texts) parts.push_back(fmt::format("{}={}", name, text));
    bound.text =
        parts.empty() ? node.name : fmt::format("{}({})", node.name, fmt::join(parts, ","));
    return bound;
  }

  Status BindInner(const SpecNode& node, const Method& method, Arguments& arguments,
                   std::vector<std::string>& parts) const {
    const std::size_t expected = method.kind() == Method::Kind::kWrapper ? 1 : 0;
    if (node.inner.size() != expected) {
      const std::size_t position =
          node.inner.size() > expected ? node.inner[expected].position : node.position;
      return Error(position, expected ? fmt::format("{} wraps one compressor, as in {}; found {}",
                                                    node.name, method.example, node.inner.size())
                                      : fmt::format("{} wraps no compressor, found {}", node.name,
                                                    node.inner.size()));
    }
    if (expected == 0) return {};
    SLIMGRAD_ASSIGN_OR_RETURN(Compressor inner, Make(node.inner[0]));
    parts.push_back(inner.spec());
    arguments.SetInner(std::move(inner));
    return {};
  }

  Status BindGiven(const SpecNode& node, const Method& method, const SpecArgument& argument,
                   Arguments& arguments, std::map<std::string, std::string>& texts) const {
    const auto it = std::find_if(method.parameters.begin(), method.parameters.end(),
                                 [&](const Parameter& p) { return p.name() == argument.name; });
    if (it == method.parameters.end()) return UnknownParameter(node, method, argument);
    if (texts.contains(argument.name))
      return Error(argument.name_position,
                   fmt::format("{} of {} is given twice", argument.name, node.name));
    return Set(node.name, *it, argument, arguments, texts[argument.name]);
  }

  Status UnknownParameter(const SpecNode& node, const Method& method,
                          const SpecArgument& argument) const {
    std::vector<std::string> names;
    for (const Parameter& parameter : method.parameters) names.push_back(parameter.name());
    return Error(argument.name_position,
                 names.empty()
                     ? fmt::format("{} has no parameters, found '{}'", node.name, argument.name)
                     : fmt::format("{} has no parameter '{}'; it has {}", node.name, argument.name,
                                   fmt::join(names, ", ")));
  }

  // Checks one value, and writes its canonical text.
  Status Set(const std::string& method, const Parameter& parameter, const SpecArgument& argument,
             Arguments& arguments, std::string& text) const {
    const auto refused = [&] {
      return Error(argument.value_position,
                   fmt::format("{} of {}: expected {}, found {}", parameter.name(), method,
                               parameter.Domain(), argument.value));
    };
    switch (parameter.type()) {
      case Parameter::Type::kReal: {
        const auto value = parameter.ParseReal(argument.value);
        if (!value) return refused();
        text = NumberText(*value);
        arguments.Set(parameter.name(), *value);
        return {};
      }
      case Parameter::Type::kInteger: {
        const auto value = parameter.ParseInteger(argument.value);
        if (!value) return refused();
        text = std::to_string(*value);
        arguments.Set(parameter.name(), *value);
        return {};
      }
      case Parameter::Type::kChoice:
        if (!parameter.HasChoice(argument.value)) return refused();
        text = argument.value;
        arguments.Set(parameter.name(), argument.value);
        return {};
      case Parameter::Type::kCompressor: break;
    }
    if (argument.node.empty()) return refused();
    SLIMGRAD_ASSIGN_OR_RETURN(Compressor child, Make(argument.node[0]));
    text = child.spec();
    arguments.Set(parameter.name(), std::move(child));
    return {};
  }

  Status BindDefaults(const SpecNode& node, const Method& method, Arguments& arguments,
                      std::map<std::string, std::string>& texts) const {
    for (const Parameter& parameter : method.parameters) {
      const std::string& other = parameter.instead_of();
      if (!other.empty() && texts.contains(parameter.name()) && texts.contains(other))
        return Error(node.position, fmt::format("{}: give {} or {}, not both", node.name,
                                                parameter.name(), other));
    }
    for (const Parameter& parameter : method.parameters) {
      if (texts.contains(parameter.name()) || Replaced(method, parameter, texts)) continue;
      if (parameter.default_text().empty()) {
        if (!parameter.instead_of().empty()) continue;
        return Error(node.position, fmt::format("{} needs {}: {}", node.name, parameter.name(),
                                                parameter.Domain()));
      }
      // A default goes the way of a given value; it has no place in the text, so the method's name
      // stands for it.
      SLIMGRAD_ASSIGN_OR_RETURN(SpecNode value, DefaultNode(parameter));
      SpecArgument argument = {
          parameter.name(), node.position, parameter.default_text(), node.position, {}};
      if (parameter.type() == Parameter::Type::kCompressor)
        argument.node.push_back(std::move(value));
      SLIMGRAD_RETURN_IF_ERROR(
          Set(node.name, parameter, argument, arguments, texts[parameter.name()]));
    }
    return {};
  }

  static bool Replaced(const Method& method, const Parameter& parameter,
                       const std::map<std::string, std::string>& texts) {
    return std::any_of(method.parameters.begin(), method.parameters.end(), [&](const Parameter& p) {
      return p.instead_of() == parameter.name() && texts.contains(p.name());
    });
  }

  static Result<SpecNode> DefaultNode(const Parameter& parameter) {
    if (parameter.type() != Parameter::Type::kCompressor) return SpecNode{};
    return ParseSpec(parameter.default_text());
  }

  Status Error(std::size_t position, std::string_view message) const {
    return SpecError(text_, position, message);
  }

  std::string_view text_;
};

}  // namespace

Result<Compressor> MakeCompressor(std::string_view spec) {
  SLIMGRAD_ASSIGN_OR_RETURN(const SpecNode node, ParseSpec(spec));
  SLIMGRAD_ASSIGN_OR_RETURN(Compressor made, Maker(spec).Make(node));
  // It is what a state file names, and has to be read again.
  if (made.spec().size() > kMaxSpecBytes)
    return InvalidArgument(
        fmt::format("spec: expected a canonical text of at most {} bytes, found {}", kMaxSpecBytes,
                    made.spec().size()));
  return made;
}

}  // namespace slimgrad
