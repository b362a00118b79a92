// Whole passes, sums, and the mean over ranks.
#include "kernels/elementwise.h"

#include <array>

#include "benchmarks/operation.h"
#include "kernels/combine.h"
#include "kernels/sums.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

// y changes in place: change(backend, x, y).
template <auto kChange, auto kChangeRef>
struct Change final : Case {
  Change(Inputs inputs, std::size_t n) : x(std::move(inputs)), y(n) {}

  void Run(const Backend& backend, std::size_t turn) override {
    kChange(backend, (*x)[turn], y[turn]);
  }
  Quality Check(const Backend& backend) override {
    const Buffer<float> expected(y[0].size());
    for (int step = 0; step < 2; ++step) {
      Run(backend, 0);
      kChangeRef({}, (*x)[0], expected.span());
    }
    return {Differing(y[0], expected.span())};
  }

  Inputs x;
  Rotation<float> y;
};

// One number comes of x.
template <auto kReduce, auto kReduceRef>
struct Reduce final : Case {
  Reduce(Inputs inputs, std::size_t) : x(std::move(inputs)) {}

  void Run(const Backend& backend, std::size_t turn) override {
    result = kReduce(backend, (*x)[turn]);
  }
  Quality Check(const Backend& backend) override {
    Run(backend, 0);
    auto expected = kReduceRef({}, (*x)[0]);
    return {Differing(std::span(&result, 1), std::span(&expected, 1))};
  }

  Inputs x;
  decltype(kReduce({}, {})) result{};
};

// Over two ranks.
struct Mean final : Case {
  Mean(Inputs inputs, std::size_t n) : x(std::move(inputs)), y(n) {}

  std::array<std::span<const std::byte>, 2> Ranks(std::size_t turn) const {
    return {std::as_bytes((*x)[turn]), std::as_bytes((*x)[turn + 1])};
  }
  void Run(const Backend& backend, std::size_t turn) override {
    k::Combine(backend, k::CombineOp::kMean, DType::kF32, Ranks(turn),
               std::as_writable_bytes(y[turn]));
  }
  Quality Check(const Backend& backend) override {
    Run(backend, 0);
    const Buffer<float> expected(y[0].size());
    k::ref::Combine({}, k::CombineOp::kMean, DType::kF32, Ranks(0),
                    std::as_writable_bytes(expected.span()));
    return {Differing(y[0], expected.span())};
  }

  Inputs x;
  Rotation<float> y;
};

constexpr auto kAddSaturated = [](const Backend& b, In x, Out y) { k::AddSaturated(b, x, y); };
constexpr auto kAddSaturatedRef = [](const Backend& b, In x, Out y) {
  k::ref::AddSaturated(b, x, y);
};
constexpr auto kAddScaled = [](const Backend& b, In x, Out y) { k::AddScaled(b, x, 0.5F, y); };
constexpr auto kAddScaledRef = [](const Backend& b, In x, Out y) {
  k::ref::AddScaled(b, x, 0.5F, y);
};
constexpr auto kCount = [](const Backend& b, In x) {
  std::uint64_t count = 0;
  k::CountNonFinite(b, x, &count);
  return count;
};
constexpr auto kCountRef = [](const Backend& b, In x) {
  std::uint64_t count = 0;
  k::ref::CountNonFinite(b, x, &count);
  return count;
};
constexpr auto kSquares = [](const Backend& b, In x) { return k::SumSquares(b, x); };
constexpr auto kSquaresRef = [](const Backend& b, In x) { return k::ref::SumSquares(b, x); };

}  // namespace

void AddElementwise(Operations& operations) {
  operations.push_back(Make<Change<kAddSaturated, kAddSaturatedRef>>("add_saturated"));
  operations.push_back(Make<Change<kAddScaled, kAddScaledRef>>("add_scaled"));
  operations.push_back(Make<Reduce<kCount, kCountRef>>("count_non_finite"));
  operations.push_back(Make<Reduce<kSquares, kSquaresRef>>("sum_squares"));
  operations.push_back(Make<Mean>("mean_of_two"));
}

}  // namespace slimgrad::benchmarks
