// A trace of gradients alone, made up: no model, no weights, no data. For tests of what replays
// traces.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace_writer.h"

namespace slimgrad::sim {

// Three workers, four steps, a matrix and a vector. Values that every gradient dtype holds exactly,
// none of them zero.
struct GradientTrace {
  TraceSchema schema;
  std::vector<std::vector<float>> initial_weights;    // empty: none
  std::vector<std::pair<std::int64_t, std::int64_t>>  // (step, rank) whose last value is NaN
      bad;

  GradientTrace() {
    schema.name = "gradients";
    schema.world_size = 3;
    schema.steps = 4;
    schema.tensors = {{"w", {8, 6}}, {"b", {5}}};
    schema.learning_rates = {0.5, 0.25, 0.125, 0.0625};
  }

  float Value(std::int64_t step, std::int64_t rank, std::size_t tensor, std::size_t i) const {
    return kNumbers[NumberOf(step, rank, tensor, i)].value;
  }

  Status WriteTo(const std::filesystem::path& folder) const {
    SLIMGRAD_ASSIGN_OR_RETURN(TraceWriter writer, TraceWriter::Create(folder, schema));
    for (std::int64_t step = 0; step < schema.steps; ++step)
      for (std::int64_t rank = 0; rank < schema.world_size; ++rank)
        SLIMGRAD_RETURN_IF_ERROR(WriteStep(writer, step, rank));
    if (!initial_weights.empty())
      SLIMGRAD_RETURN_IF_ERROR(
          writer.InitialWeights(std::vector<In>(initial_weights.begin(), initial_weights.end())));
    return writer.Finish();
  }

 private:
  struct Number {
    float value;
    std::uint16_t fp16, bf16;
  };
  static constexpr std::array<Number, 7> kNumbers = {{{1, 0x3C00, 0x3F80},
                                                      {-2, 0xC000, 0xC000},
                                                      {0.5F, 0x3800, 0x3F00},
                                                      {3, 0x4200, 0x4040},
                                                      {-0.25F, 0xB400, 0xBE80},
                                                      {10, 0x4900, 0x4120},
                                                      {-7, 0xC700, 0xC0E0}}};

  static std::size_t NumberOf(std::int64_t step, std::int64_t rank, std::size_t tensor,
                              std::size_t i) {
    const auto s = static_cast<std::size_t>(step), r = static_cast<std::size_t>(rank);
    return (s * 3 + r * r * 2 + tensor + i + i / 4) % kNumbers.size();
  }

  Status WriteStep(TraceWriter& writer, std::int64_t step, std::int64_t rank) const {
    std::vector<std::vector<float>> wide;
    std::vector<std::vector<std::uint16_t>> narrow;
    std::vector<ConstView> views;
    const bool half = schema.gradient_dtype == DType::kF16;
    for (std::size_t t = 0; t < schema.tensors.size(); ++t) {
      wide.emplace_back();
      narrow.emplace_back();
      for (std::size_t i = 0; i < schema.tensors[t].numel(); ++i) {
        const Number& number = kNumbers[NumberOf(step, rank, t, i)];
        wide[t].push_back(number.value);
        narrow[t].push_back(half ? number.fp16 : number.bf16);
      }
    }
    for (const auto& [bad_step, bad_rank] : bad) {
      if (bad_step != step || bad_rank != rank) continue;
      wide.back().back() = std::numeric_limits<float>::quiet_NaN();
      narrow.back().back() = half ? 0x7E00 : 0x7FC0;
    }
    for (std::size_t t = 0; t < schema.tensors.size(); ++t) {
      if (schema.gradient_dtype == DType::kF32)
        views.emplace_back(In(wide[t]));
      else
        views.emplace_back(narrow[t].data(), narrow[t].size(), schema.gradient_dtype, Device::kCpu);
    }
    return writer.Gradients(step, rank, views);
  }
};

}  // namespace slimgrad::sim
