#include "sim/report/headline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "sim/report/columns.h"
#include "sim/report/format.h"

namespace slimgrad::sim::report {
namespace {

constexpr double kTolerance = 0.01;  // of accuracy, as a fraction

std::optional<double> Accuracy(const Row& row) {
  if (!row.closed_loop || !row.closed_loop->failure.empty()) return std::nullopt;
  return row.closed_loop->eval_accuracy;
}

// Bytes where there are several workers, else the payload.
std::optional<double> Size(const Row& row) {
  return row.sent_bytes ? row.sent_bytes : row.payload_bits;
}

const Row* Uncompressed(const Report& report) {
  for (const Row& row : report.rows) {
    if (row.spec == "none") return &row;
  }
  return nullptr;
}

std::string ShownIn(std::string_view column_name, const Report& report, const Row& row) {
  for (const Column& column : Columns()) {
    if (column.name == column_name) return Shown(column, {report, row, nullptr});
  }
  SLIMGRAD_CHECK(false);
}

// "1-3, 15" for ascending numbers.
std::string Ranges(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
    if (last > i) out += fmt::format("{}{}", last > i + 1 ? "-" : ", ", numbers[last]);
    i = last + 1;
  }
  return out;
}

// Bytes depend on the collective, so it is part of every result: "Collectives: all_gather (rows
// 1-3)". Empty with one rank.
std::string Collectives(const Report& report) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> users;  // by first use
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    for (const std::string& name : report.rows[i].algorithms) {
      auto user = std::find_if(users.begin(), users.end(),
                               [&](const auto& known) { return known.first == name; });
      if (user == users.end()) user = users.insert(user, {name, {}});
      user->second.push_back(i + 1);
    }
  }
  std::string out;
  for (const auto& [name, rows] : users) {
    out += fmt::format("{}{} (row{} {})", out.empty() ? "Collectives: " : ", ", name,
                       rows.size() == 1 ? "" : "s", Ranges(rows));
  }
  return out.empty() ? out : out + ".";
}

}  // namespace

std::string Headline(const Report& report) {
  const Row* none = Uncompressed(report);
  if (none == nullptr || !Accuracy(*none)) return "";
  const double least = *Accuracy(*none) - kTolerance;
  const Row* best = none;
  for (const Row& row : report.rows) {
    if (!Accuracy(row) || *Accuracy(row) < least || !Size(row)) continue;
    if (!Size(*best) || *Size(row) < *Size(*best)) best = &row;
  }
  if (best == none) {
    return "No compressor here sends less than none without losing more than one percentage point "
           "of closed-loop accuracy.";
  }
  const bool traffic = best->sent_bytes.has_value();
  return fmt::format(
      "Fewest bytes within one percentage point of the uncompressed closed-loop accuracy "
      "({} %): {}, with {} %. Dense 32-bit {} {}x its size, dense 16-bit {}x. One run, one seed.",
      ThreeDigits(*Accuracy(*none) * 100), OneLine(best->label.empty() ? best->spec : best->label),
      ThreeDigits(*Accuracy(*best) * 100), traffic ? "traffic is" : "payloads are",
      ShownIn(traffic ? "traffic_ratio_32" : "payload_ratio_32", report, *best),
      ShownIn(traffic ? "traffic_ratio_16" : "payload_ratio_16", report, *best));
}

std::vector<std::string> RowNotes(const Report& report) {
  std::vector<std::string> notes;
  const std::string collectives = Collectives(report);
  if (!collectives.empty()) notes.push_back(collectives);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const Row& row = report.rows[i];
    const auto add = [&](const std::string& text) {
      notes.push_back(fmt::format("row {}: {}", i + 1, text));
    };
    if (!row.failure.empty()) add("failed: " + row.failure);
    if (row.closed_loop && !row.closed_loop->failure.empty()) {
      add("closed loop: " + row.closed_loop->failure);
    }
    if (row.open_loop && !row.open_loop->failure.empty()) {
      add("open loop: " + row.open_loop->failure);
    }
    if (row.dense_fraction > 0 && !row.dense_reason.empty()) {
      add(fmt::format("{} % of the parameters went uncompressed: {}",
                      ThreeDigits(row.dense_fraction * 100), row.dense_reason));
    }
    if (row.saturated > 0) {
      add(fmt::format("{} {} overflowed the wire type", row.saturated,
                      row.saturated == 1 ? "value" : "values"));
    }
    if (row.skipped_steps > 0) {
      add(fmt::format("{} {} skipped: a gradient held NaN or infinity", row.skipped_steps,
                      row.skipped_steps == 1 ? "step" : "steps"));
    }
  }
  return notes;
}

}  // namespace slimgrad::sim::report
