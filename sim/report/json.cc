// report.json and timings.json; docs/report_format.md is the contract.
#include "sim/report/json.h"

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/report/columns.h"
#include "sim/report/report.h"

namespace slimgrad::sim {
namespace report {
namespace {

constexpr int kVersion = 1;

std::string_view BetterText(Better better) {
  switch (better) {
    case Better::kLess: return "less";
    case Better::kMore: return "more";
    case Better::kNeither: break;
  }
  return "neither";
}

// JSON has no token for these; the row's "non_finite" says what a null stands for.
std::string_view NonFiniteName(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

Json RowJson(const Report& report, const Row& row) {
  Json json = Json::object();
  Json non_finite = Json::object();
  for (const Column& column : Columns()) {
    if (column.section == Section::kSpeed) continue;
    const Cell cell = column.get({report, row, nullptr});
    const std::string name(column.name);
    json[name] = CellJson(cell);
    const auto* number = std::get_if<double>(&cell);
    if (number != nullptr && !std::isfinite(*number)) non_finite[name] = NonFiniteName(*number);
  }
  json["non_finite"] = std::move(non_finite);
  Json steps = Json::object();
  steps["nmse"] = row.nmse_steps;
  steps["residual_norm"] = row.residual_norm_steps;
  steps["closed_train_loss"] =
      row.closed_loop ? row.closed_loop->train_loss : std::vector<double>();
  json["steps"] = std::move(steps);
  Json tensors = Json::array();
  for (const NamedValue& tensor : row.tensor_nmse) {
    tensors.push_back({{"name", tensor.name}, {"nmse", tensor.value}});
  }
  json["tensors"] = std::move(tensors);
  return json;
}

}  // namespace

Json CellJson(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nullptr;
        } else {
          return value;  // a non-finite number is written as null
        }
      },
      cell);
}

Json ColumnJson(const Column& column) {
  Json json = Json::object();
  json["name"] = column.name;
  json["unit"] = column.unit;
  json["better"] = BetterText(column.better);
  json["meaning"] = column.meaning;
  return json;
}

Json FactsJson(const Facts& facts) {
  Json json = Json::object();
  for (const auto& [key, value] : facts) json[key] = value;
  return json;
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace report

std::string ToJson(const Report& report) {
  report::Json json = report::Json::object();
  json["format"] = "slimgrad-report";
  json["version"] = report::kVersion;
  json["provenance"] = report::FactsJson(report.provenance);
  json["notes"] = report.notes;
  json["world_size"] = report.world_size;
  json["parameters"] = report.parameters;
  json["measured_in"] = report.measured_in == Loop::kOpen ? "open_loop" : "closed_loop";
  report::Json columns = report::Json::array();
  for (const report::Column& column : report::Columns()) {
    if (column.section != report::Section::kSpeed) columns.push_back(report::ColumnJson(column));
  }
  json["columns"] = std::move(columns);
  report::Json rows = report::Json::array();
  for (const Row& row : report.rows) rows.push_back(report::RowJson(report, row));
  json["rows"] = std::move(rows);
  return report::Dump(json, 1) + "\n";
}

std::string TimingsToJson(const Timings& timings) {
  const Report no_report;
  const Row no_row;
  report::Json json = report::Json::object();
  json["format"] = "slimgrad-timings";
  json["version"] = report::kVersion;
  json["machine"] = report::FactsJson(timings.machine);
  report::Json columns = report::Json::array();
  for (const report::Column& column : report::Columns()) {
    if (column.section == report::Section::kSpeed) columns.push_back(report::ColumnJson(column));
  }
  json["columns"] = std::move(columns);
  report::Json rows = report::Json::array();
  for (const RowTiming& timing : timings.rows) {
    report::Json row = report::Json::object();
    row["spec"] = timing.spec;
    for (const report::Column& column : report::Columns()) {
      if (column.section != report::Section::kSpeed) continue;
      row[std::string(column.name)] = report::CellJson(column.get({no_report, no_row, &timing}));
    }
    rows.push_back(std::move(row));
  }
  json["rows"] = std::move(rows);
  return report::Dump(json, 1) + "\n";
}

}  // namespace slimgrad::sim
