// report.html: everything but the plots is made here, so that it is there without JavaScript.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/report/assets.h"
#include "sim/report/columns.h"
#include "sim/report/format.h"
#include "sim/report/headline.h"
#include "sim/report/html.h"
#include "sim/report/plot_data.h"
#include "sim/report/report.h"

namespace slimgrad::sim {
namespace report {
namespace {

constexpr std::size_t kMostTensors = 24;  // more columns of a heat table are no longer looked at

// By the reader's questions: how many bytes, how accurate, how fast.
constexpr std::array kSections = {Section::kSent, Section::kClosed, Section::kError, Section::kOpen,
                                  Section::kSpeed};

std::string_view Class(Section section) {
  switch (section) {
    case Section::kName: return "name";
    case Section::kSent: return "sent";
    case Section::kError: return "error";
    case Section::kClosed: return "closed";
    case Section::kOpen: return "open";
    case Section::kSpeed: return "speed";
  }
  return "";
}

struct Shape {
  const Column* column;
  bool first;  // of its group
  bool key;    // in the terminal's tables too; the others are details
};

// The columns of the table, names apart, in the order of kSections.
std::vector<Shape> Shapes(const Report& report, const Timings* timings) {
  std::vector<Shape> shapes;
  for (const Section section : kSections) {
    if (section == Section::kSpeed && timings == nullptr) continue;
    bool first = true;
    for (const Column& column : Columns()) {
      if (column.section != section) continue;
      const bool key = In(Table::kBytes, column, report) || In(Table::kError, column, report) ||
                       In(Table::kEnd, column, report);
      shapes.push_back({&column, first, key});
      first = false;
    }
  }
  return shapes;
}

std::string Classes(const Shape& shape) {
  return fmt::format("g-{}{}{}{}", Class(shape.column->section), shape.key ? "" : " extra",
                     shape.column->show == Show::kText ? " text" : "",
                     shape.first ? " first-of-group" : "");
}

std::string Head(const std::vector<Shape>& shapes) {
  std::string out =
      "<th scope=\"col\" data-better=\"less\"><button type=\"button\" title=\"The compressor. "
      "Click to sort.\"><span class=\"sort\">compressor</span></button></th>";
  for (const Shape& shape : shapes) {
    const Column& column = *shape.column;
    out += fmt::format(
        "<th scope=\"col\" class=\"{}\" data-column=\"{}\" data-better=\"{}\">"
        "<button type=\"button\" title=\"{}\">{}"
        "<span class=\"unit sort\">{}</span></button></th>",
        Classes(shape), column.name, column.better == Better::kMore ? "more" : "less",
        Escape(column.meaning), Escape(FullHeading(column)), Escape(column.shown_unit));
  }
  return out;
}

// The full number behind a shown one: for sorting, and for a reader who hovers.
std::string FullNumber(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) {
    return std::isfinite(*number) ? fmt::format("{}", *number) : "";
  }
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *count);
  return "";
}

std::string DataCell(const Shape& shape, const Source& source) {
  const Cell cell = shape.column->get(source);
  const std::string shown = Shown(*shape.column, source);
  const bool nothing = std::holds_alternative<std::monostate>(cell);
  const std::string classes = fmt::format("{}{}{}", Classes(shape), nothing ? " nothing" : "",
                                          shown == "failed" ? " failed" : "");
  if (shape.column->show == Show::kText) {
    return fmt::format("<td class=\"{}\">{}</td>", classes, Escape(shown));
  }
  const std::string full = FullNumber(cell);
  return fmt::format("<td class=\"{}\" data-value=\"{}\"{}>{}</td>", classes, full,
                     full.empty() ? "" : fmt::format(" title=\"{}\"", full), Escape(shown));
}

// A spec, with places where it may be broken over lines.
std::string SpecHtml(std::string_view spec) {
  std::string out;
  for (const char byte : OneLine(spec)) {
    if (byte == '|') out += "<wbr>";
    out += Escape(std::string_view(&byte, 1));
    if (byte == '(' || byte == ',' || byte == '_') out += "<wbr>";
  }
  return out;
}

std::string TextOf(std::string_view name, const Source& source) {
  for (const Column& column : Columns()) {
    if (column.name == name) return Shown(column, source);
  }
  return "";
}

// Number, name as asked for, canonical text where it says more, collective, and what failed.
std::string NameCell(std::size_t number, const Source& source) {
  const Row& row = source.row;
  const std::string name = row.label.empty() ? row.spec : row.label;
  std::string out = fmt::format(
      "<th scope=\"row\"><div class=\"row-name\"><span class=\"n\">{}</span><div>"
      "<span class=\"spec\">{}</span>",
      number, SpecHtml(name));
  if (row.spec != name) {
    out += fmt::format("<small class=\"spec\">{}</small>", SpecHtml(row.spec));
  }
  const std::string algorithms = TextOf("algorithms", source);
  if (!algorithms.empty()) {
    out += fmt::format("<small class=\"extra\">{}</small>", Escape(algorithms));
  }
  const std::string failure = TextOf("failure", source);
  if (!failure.empty()) out += fmt::format("<small class=\"why\">{}</small>", Escape(failure));
  return out + "</div></div></th>";
}

std::string Rows(const Report& report, const Timings* timings, const std::vector<Shape>& shapes) {
  std::string out;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const Source source = {report, report.rows[i], FindTiming(timings, report.rows[i])};
    out += fmt::format("<tr id=\"row-{0}\" data-row=\"{0}\"{1}>", i + 1,
                       source.row.failure.empty() ? "" : " class=\"failed\"");
    out += NameCell(i + 1, source);
    for (const Shape& shape : shapes) out += DataCell(shape, source);
    out += "</tr>\n";
  }
  return out;
}

std::string Groups(const Timings* timings) {
  std::string out;
  for (const Section section : kSections) {
    if (section == Section::kSpeed && timings == nullptr) continue;
    out += fmt::format("<label><input type=\"checkbox\" data-group=\"{}\"{}>{}</label>",
                       Class(section), section == Section::kOpen ? "" : " checked", Title(section));
  }
  return out;
}

// 0 (best) to 7 (above 1, or no number): a shade a factor of ten from 1e-6.
int HeatLevel(double nmse) {
  if (std::isnan(nmse) || nmse > 1) return 7;
  if (nmse <= 1e-6) return 0;
  return static_cast<int>(std::ceil(std::log10(nmse) + 6));
}

std::string HeatCell(const Row& row, const std::string& tensor) {
  for (const NamedValue& error : row.tensor_nmse) {
    if (error.name != tensor) continue;
    return fmt::format("<td class=\"h{}\">{}</td>", HeatLevel(error.value),
                       ThreeDigits(error.value));
  }
  return "<td class=\"nothing\">n/a</td>";
}

std::string TensorLimit(const Report& report) {
  const std::size_t all = WorstTensors(report, static_cast<std::size_t>(-1)).size();
  if (all <= kMostTensors) return "";
  return fmt::format(", the worst {} of {}", kMostTensors, all);
}

std::string Heat(const Report& report, const std::vector<std::string>& tensors) {
  if (tensors.empty()) return "<p class=\"muted\">No errors by tensor in this report.</p>";
  std::string out = fmt::format(
      "<p class=\"muted\">Mean NMSE over the steps{}; darker is worse, a shade a factor of ten. "
      "The full list is in report.json.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Error by tensor, scrolls sideways\">\n<table class=\"heat\"><thead><tr>"
      "<th scope=\"col\">compressor</th>",
      TensorLimit(report));
  for (const std::string& tensor : tensors) {
    out += fmt::format("<th scope=\"col\">{}</th>", Escape(OneLine(tensor)));
  }
  out += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const Row& row = report.rows[i];
    if (row.tensor_nmse.empty()) continue;
    out += fmt::format(
        "<tr><th scope=\"row\"><div class=\"row-name\"><span class=\"n\">{}</span>"
        "<span class=\"spec\">{}</span></div></th>",
        i + 1, SpecHtml(row.label.empty() ? row.spec : row.label));
    for (const std::string& tensor : tensors) out += HeatCell(row, tensor);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>";
}

std::string Meanings(const Report& report, const Timings* timings) {
  std::string out;
  for (const Shape& shape : Shapes(report, timings)) {
    const Column& column = *shape.column;
    out += fmt::format(
        "<div><dt>{} <span class=\"unit\">{}</span> <span class=\"muted\"><code>{}</code></span>"
        "</dt><dd>{}</dd></div>\n",
        Escape(FullHeading(column)), Escape(column.shown_unit), column.name,
        Escape(column.meaning));
  }
  return out;
}

std::string FactList(const Facts& facts) {
  std::string out = "<dl class=\"facts\">\n";
  for (const auto& [key, value] : facts) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Escape(OneLine(key)), Escape(OneLine(value)));
  }
  return out + "</dl>\n";
}

std::string Notes(const Report& report) {
  std::vector<std::string> notes = report.notes;
  for (std::string& note : RowNotes(report)) notes.push_back(std::move(note));
  if (notes.empty()) return "<p>None.</p>";
  std::string out = "<ul>\n";
  for (const std::string& note : notes) out += fmt::format("<li>{}</li>\n", Escape(note));
  return out + "</ul>";
}

std::string Provenance(const Report& report, const Timings* timings) {
  std::string out = FactList(report.provenance);
  if (timings != nullptr && !timings->machine.empty()) {
    out += "<h3>Where the speed was measured</h3>\n" + FactList(timings->machine);
  }
  return out;
}

// What was compressed: the trace, or whatever the provenance names first after the tool.
std::string Subject(const Report& report) {
  for (const auto& [key, value] : report.provenance) {
    if (key == "trace") return value;
  }
  return fmt::format("{} compressors", report.rows.size());
}

std::string Alarm(const Report& report) {
  const auto has_failed = [](const Row& row) {
    Report one;
    one.rows = {row};
    return one.HasFailures();
  };
  const auto failed = std::count_if(report.rows.begin(), report.rows.end(), has_failed);
  if (failed == 0) return "";
  return fmt::format(
      "<p class=\"alarm\">{} of {} compressors failed or diverged; the <a "
      "href=\"#notes\">notes</a> "
      "say why.</p>",
      failed, report.rows.size());
}

std::string StrideNote(const Report& report) {
  const std::size_t stride = Stride(report);
  if (stride == 1) return "";
  return fmt::format(
      "<p class=\"muted\">The plots over steps show one step in {}; all are in report.json.</p>",
      stride);
}

std::string Wrapped(std::string_view before, const std::string& text, std::string_view after) {
  return text.empty() ? "" : fmt::format("{}{}{}", before, Escape(text), after);
}

}  // namespace
}  // namespace report

std::string ToHtml(const Report& report, const Timings* timings) {
  const std::vector<report::Shape> shapes = report::Shapes(report, timings);
  const std::vector<std::string> tensors = report::WorstTensors(report, report::kMostTensors);
  const std::string subject = report::OneLine(report::Subject(report));
  return report::Fill(
      report::kTemplateHtml,
      {
          {"title", report::Escape("slimgrad: " + subject)},
          {"style", report::kReportCss},
          {"subject", report::Escape(subject)},
          {"headline", report::Wrapped("<p class=\"answer\">", report::Headline(report), "</p>")},
          {"alarm", report::Alarm(report)},
          {"measured_in", report.measured_in == Loop::kOpen ? "open loop" : "closed loop"},
          {"tensor_limit", report::TensorLimit(report)},
          {"stride", report::StrideNote(report)},
          {"groups", report::Groups(timings)},
          {"head", report::Head(shapes)},
          {"rows", report::Rows(report, timings, shapes)},
          {"speed_note", timings == nullptr
                             ? ""
                             : " Speed was measured on one machine and differs from run to run; it "
                               "is not part of report.json and report.csv."},
          {"heat", report::Heat(report, tensors)},
          {"meanings", report::Meanings(report, timings)},
          {"notes", report::Notes(report)},
          {"provenance", report::Provenance(report, timings)},
          {"data", report::EscapeJson(report::PlotData(report, timings, tensors))},
          {"chart", report::kChartJs},
          {"labels", report::kLabelsJs},
          {"numbers", report::kNumbersJs},
          {"table", report::kTableJs},
          {"script", report::kReportJs},
      });
}

}  // namespace slimgrad::sim
