// Gradients for tests of the exchange: any tensors, any group, values that depend on rank, tensor,
// step and element alone.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "comm/exchange.h"
#include "compressors/api/registry.h"

namespace slimgrad {

inline Compressor MustMake(std::string_view spec) {
  auto made = MakeCompressor(spec);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

inline std::unique_ptr<Exchange> MustCreate(Group& group, std::string_view spec,
                                            std::vector<TensorSpec> tensors,
                                            ExchangeOptions options = {}) {
  auto made = Exchange::Create(group, MustMake(spec), std::move(tensors), std::move(options));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

// Multiples of 1/8 below 16 in magnitude: exact in fp16, and sums of a few are exact in any order.
inline float ValueOf(int rank, std::size_t tensor, std::uint64_t step, std::size_t i) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(rank) * 71 + tensor * 13 + step * 29 + i * 37 + i / 64) % 255;
  return static_cast<float>(static_cast<int>(mixed) - 127) / 8;
}

// fp32 gradients and averages of one group's local ranks. Everything is laid out once.
class Worker {
 public:
  Worker(Group& group, std::span<const TensorSpec> tensors)
      : ranks_(group.local_ranks().begin(), group.local_ranks().end()) {
    for (std::size_t l = 0; l < ranks_.size(); ++l) {
      gradients_.emplace_back();
      averages_.emplace_back();
      for (const TensorSpec& tensor : tensors) {
        gradients_[l].emplace_back(tensor.numel());
        averages_[l].emplace_back(tensor.numel(), -99.0F);
      }
    }
    gradient_views_.resize(ranks_.size());
    average_views_.resize(ranks_.size());
    for (std::size_t l = 0; l < ranks_.size(); ++l) {
      for (auto& gradient : gradients_[l]) gradient_views_[l].emplace_back(In(gradient));
      for (auto& average : averages_[l]) average_views_[l].emplace_back(Out(average));
    }
    for (const auto& row : gradient_views_) gradient_rows_.emplace_back(row);
    for (const auto& row : average_views_) average_rows_.emplace_back(row);
  }

  void Fill(std::uint64_t step) {
    for (std::size_t l = 0; l < ranks_.size(); ++l)
      for (std::size_t t = 0; t < gradients_[l].size(); ++t)
        for (std::size_t i = 0; i < gradients_[l][t].size(); ++i)
          gradients_[l][t][i] = ValueOf(ranks_[l], t, step, i);
  }
  Status Run(Exchange& exchange) {
    return exchange.Step(gradient_rows_, average_rows_, {.learning_rate = 0.1});
  }
  Status FillAndRun(Exchange& exchange) {
    Fill(exchange.next_step());
    return Run(exchange);
  }

  std::span<const int> ranks() const { return ranks_; }
  std::vector<float>& gradient(std::size_t l, std::size_t t) { return gradients_[l][t]; }
  const std::vector<float>& average(std::size_t l, std::size_t t) const { return averages_[l][t]; }
  const std::vector<std::vector<float>>& averages(std::size_t l) const { return averages_[l]; }
  std::span<const std::span<const ConstView>> gradient_rows() const { return gradient_rows_; }
  std::span<const std::span<const View>> average_rows() const { return average_rows_; }

 private:
  std::vector<int> ranks_;
  std::vector<std::vector<std::vector<float>>> gradients_, averages_;
  std::vector<std::vector<ConstView>> gradient_views_;
  std::vector<std::vector<View>> average_views_;
  std::vector<std::span<const ConstView>> gradient_rows_;
  std::vector<std::span<const View>> average_rows_;
};

// The lasting fields' bytes of every tensor of local rank l.
inline std::string StateBits(Exchange& exchange, std::size_t l) {
  struct Collector final : FieldVisitor {
    void Field(const std::string& path, DType, std::span<std::byte> bytes, Memory&) override {
      all += path + ":";
      all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    std::string all;
  } collector;
  for (std::size_t t = 0; t < exchange.tensors().size(); ++t)
    exchange.state(l, t).Fields(collector);
  return collector.all;
}

// The fp32 field "residual" of local rank l and tensor t.
inline std::vector<float> Residual(Exchange& exchange, std::size_t l, std::size_t t) {
  struct Finder final : FieldVisitor {
    void Field(const std::string& path, DType, std::span<std::byte> bytes, Memory&) override {
      if (path != "residual") return;
      values.resize(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
    }
    std::vector<float> values;
  } finder;
  exchange.state(l, t).Fields(finder);
  return finder.values;
}

// Bit for bit: tells -0 from +0 and NaNs from each other.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace slimgrad
