#include "sim/report/plot_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "sim/report/columns.h"
#include "sim/report/json.h"

namespace slimgrad::sim::report {
namespace {

constexpr std::size_t kMostPoints = 400;

Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.3e}", value).c_str(), nullptr);
}

// The values that are drawn: every stride-th.
Json Drawn(const std::vector<double>& steps, std::size_t stride) {
  Json json = Json::array();
  for (std::size_t step = 0; step < steps.size(); step += stride) {
    json.push_back(Rounded(steps[step]));
  }
  return json;
}

// A number that can be drawn, or null.
Json Value(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) {
    return std::isfinite(*number) ? Json(*number) : Json(nullptr);
  }
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return *count;
  return nullptr;
}

Json TensorErrors(const Row& row, const std::vector<std::string>& tensors) {
  std::map<std::string_view, double> errors;
  for (const NamedValue& tensor : row.tensor_nmse) errors.emplace(tensor.name, tensor.value);
  Json json = Json::array();
  for (const std::string& name : tensors) {
    const auto error = errors.find(name);
    json.push_back(error == errors.end() ? Json(nullptr) : Rounded(error->second));
  }
  return json;
}

Json PlotColumn(const Column& column) {
  Json json = Json::object();
  json["name"] = column.name;
  json["heading"] = FullHeading(column);
  json["unit"] = column.shown_unit;
  json["better"] = column.better == Better::kMore ? "more" : "less";
  json["percent"] = column.show == Show::kPercent;
  json["logarithmic"] = column.name.substr(0, 4) == "nmse";
  return json;
}

}  // namespace

std::size_t Stride(const Report& report) {
  std::size_t longest = 1;
  for (const Row& row : report.rows) {
    longest = std::max({longest, row.nmse_steps.size(), row.residual_norm_steps.size(),
                        row.closed_loop ? row.closed_loop->train_loss.size() : 0});
  }
  return (longest + kMostPoints - 1) / kMostPoints;
}

std::vector<std::string> WorstTensors(const Report& report, std::size_t most) {
  std::vector<NamedValue> tensors;  // in order of first appearance, with the largest error
  std::map<std::string, std::size_t> places;
  for (const Row& row : report.rows) {
    for (const NamedValue& tensor : row.tensor_nmse) {
      const auto [place, is_new] = places.emplace(tensor.name, tensors.size());
      if (is_new) tensors.push_back({tensor.name, 0});
      double& largest = tensors[place->second].value;
      if (tensor.value > largest) largest = tensor.value;  // false for NaN
    }
  }
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].value > tensors[b].value;
  });
  order.resize(std::min(order.size(), most));
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const std::size_t i : order) names.push_back(tensors[i].name);
  return names;
}

std::string PlotData(const Report& report, const Timings* timings,
                     const std::vector<std::string>& tensors) {
  const std::size_t stride = Stride(report);
  Json json = Json::object();
  Json columns = Json::array();
  for (const Column& column : Columns()) {
    if (column.show != Show::kText) columns.push_back(PlotColumn(column));
  }
  json["columns"] = std::move(columns);
  json["tensors"] = tensors;
  json["stride"] = stride;
  Json rows = Json::array();
  for (const Row& row : report.rows) {
    Json plotted = Json::object();
    plotted["name"] = row.label.empty() ? row.spec : row.label;
    Json values = Json::object();
    for (const Column& column : Columns()) {
      if (column.show == Show::kText) continue;
      values[std::string(column.name)] = Value(column.get({report, row, FindTiming(timings, row)}));
    }
    plotted["values"] = std::move(values);
    plotted["nmse"] = Drawn(row.nmse_steps, stride);
    plotted["residual"] = Drawn(row.residual_norm_steps, stride);
    plotted["train"] =
        Drawn(row.closed_loop ? row.closed_loop->train_loss : std::vector<double>(), stride);
    plotted["tensors"] = TensorErrors(row, tensors);
    rows.push_back(std::move(plotted));
  }
  json["rows"] = std::move(rows);
  return Dump(json, -1);
}

}  // namespace slimgrad::sim::report
