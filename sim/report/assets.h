// The HTML page's parts, embedded by the build (see BUILD).
#pragma once

namespace slimgrad::sim::report {

extern const char kTemplateHtml[];
extern const char kReportCss[];
extern const char kLabelsJs[];
extern const char kNumbersJs[];
extern const char kReportJs[];
extern const char kTableJs[];
extern const char kChartJs[];  // Chart.js with its licence comment, MIT

}  // namespace slimgrad::sim::report
