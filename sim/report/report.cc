#include "sim/report/report.h"

#include <algorithm>

namespace slimgrad::sim {

bool Report::HasFailures() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return !row.failure.empty() || (row.open_loop && !row.open_loop->failure.empty()) ||
           (row.closed_loop && !row.closed_loop->failure.empty());
  });
}

}  // namespace slimgrad::sim
