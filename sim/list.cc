#include "sim/list.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"
#include "core/random.h"
#include "sim/report/format.h"
#include "sim/tensor_set.h"

namespace slimgrad::sim {
namespace {

using Cells = std::vector<std::string>;

const TensorSpec& ExampleTensor() {
  static const TensorSpec tensor = {"example", {1024, 1024}};
  return tensor;
}

std::string KindText(Method::Kind kind) {
  switch (kind) {
    case Method::Kind::kCompressor: return "compressor";
    case Method::Kind::kWrapper: return "wrapper";
    case Method::Kind::kRecoder: return "recoder";
  }
  return "?";
}

std::string CollectiveText(const Plan& plan) {
  Cells names;
  for (const Round& round : plan.rounds)
    names.push_back(round.kind == Round::Kind::kGather
                        ? "gather"
                        : fmt::format("{} {}", NameOf(round.op), NameOf(round.dtype)));
  return fmt::format("{}", fmt::join(names, " + "));
}

std::string ClaimsText(const Traits& traits) {
  Cells claims;
  if (traits.exact) claims.push_back("exact");
  if (traits.unbiased && !traits.exact) claims.push_back("unbiased");
  if (traits.delta && !traits.exact) claims.push_back(fmt::format("delta {:.3g}", *traits.delta));
  return claims.empty() ? "-" : fmt::format("{}", fmt::join(claims, ", "));
}

std::string PerParameter(double amount) {
  return fmt::format("{:.3g}", amount / static_cast<double>(ExampleTensor().numel()));
}

// One step of one rank on values spread evenly over [-0.5, 0.5): what a payload really takes.
Status RunStep(Exchange& exchange) {
  const TensorSet gradient(exchange.tensors()), average(exchange.tensors());
  const RandomKey key = MakeRandomKey(0, 0, "list", ExampleTensor().name, 0);
  for (std::size_t i = 0; i < ExampleTensor().numel(); ++i)
    gradient.outs()[0][i] = Uniform(key, i) - 0.5F;
  const std::span<const ConstView> gradients = gradient.const_views();
  const std::span<const View> averages = average.views();
  return exchange.Step({&gradients, 1}, {&averages, 1}, {});
}

// The cells that the example decides; an example that cannot run is the method's mistake.
Cells MeasuredCells(const Method& method) {
  const Result<Compressor> compressor = MakeCompressor(method.example);
  SLIMGRAD_CHECK(compressor.ok());
  LockStepGroup group(1);
  const auto exchange = Exchange::Create(group, *compressor, {ExampleTensor()}, {});
  SLIMGRAD_CHECK(exchange.ok() && RunStep(**exchange).ok());
  const Plan& plan = (*exchange)->plans()[0];
  return {CollectiveText(plan),
          PerParameter(8.0 * static_cast<double>((*exchange)->report().payload_bytes)),
          PerParameter(static_cast<double>(StateBytes((*exchange)->state(0, 0)))),
          ClaimsText(plan.traits)};
}

Cells RowOf(const Method& method) {
  Cells row = {method.name, KindText(method.kind())};
  for (std::string& cell : MeasuredCells(method)) row.push_back(std::move(cell));
  row.push_back("cpu");
  row.push_back(method.summary);
  return row;
}

std::string DetailText(const Method& method) {
  std::string text = fmt::format("\n{}: {}\n  source   {}\n  example  {}\n", method.name,
                                 method.summary, method.reference, method.example);
  for (const Parameter& parameter : method.parameters) {
    std::string preset = parameter.default_text().empty()
                             ? ""
                             : fmt::format(", default {}", parameter.default_text());
    if (!parameter.instead_of().empty())
      preset += fmt::format(", instead of {}", parameter.instead_of());
    text += fmt::format("  {:<8} {}{}: {}\n", parameter.name(), parameter.Domain(), preset,
                        parameter.doc());
  }
  return text;
}

}  // namespace

std::string ListText() {
  std::vector<Cells> rows = {
      {"name", "kind", "ranks meet by", "bits", "state", "claims", "runs on", "what it does"},
      {"", "", "", "/param", "B/param", "", "", ""}};
  std::string details;
  for (const Method* method : Methods()) {
    rows.push_back(RowOf(*method));
    details += DetailText(*method);
  }
  return "# Bits, state and claims are those of the example, for one tensor of 1024 x 1024.\n" +
         report::TextTable(std::move(rows)) + details;
}

}  // namespace slimgrad::sim
