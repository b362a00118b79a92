// A small trace on the disk, fresh for every test.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "sim/trace.h"
#include "tests/sim/synthetic_trace.h"

namespace slimgrad::sim {

class TraceTest : public TraceFolder {
 protected:
  void SetUp() override {
    const Status status = made_.WriteTo(folder_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  Status OpenError() const { return Trace::Open(folder_).status(); }

  // Of the first step file that is refused.
  Status StepError() const {
    const Result<Trace> trace = Trace::Open(folder_);
    if (!trace.ok()) return trace.status();
    for (std::int64_t step = 0; step < trace->schema().steps; ++step) {
      for (std::int64_t rank = 0; rank < trace->schema().world_size; ++rank) {
        SLIMGRAD_RETURN_IF_ERROR(trace->Gradients(step, rank).status());
      }
    }
    return {};
  }

  SyntheticTrace made_;
};

}  // namespace slimgrad::sim
