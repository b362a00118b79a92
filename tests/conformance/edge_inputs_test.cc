// Values and memory at the edge: zeros, denormals, the largest floats, views that start anywhere,
// 16-bit gradients.
#include <cmath>

#include "kernels/convert.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class EdgeInputs : public ForEverySpec {};

struct EdgeCase {
  const char* name;
  float (*value)(std::size_t i);
};

constexpr EdgeCase kCases[] = {
    {"constant", [](std::size_t) { return -0.375F; }},
    {"smallest denormal", [](std::size_t i) { return i % 2 == 0 ? 1e-45F : -1e-45F; }},
    {"1e-40", [](std::size_t i) { return i % 3 == 0 ? -1e-40F : 1e-40F; }},
    {"1e-40 constant", [](std::size_t) { return 1e-40F; }},
    {"1e30", [](std::size_t i) { return i % 3 == 0 ? -1e30F : 1e30F; }},
    {"3e38", [](std::size_t) { return 3e38F; }},
    {"3e38 of both signs", [](std::size_t i) { return i % 3 == 0 ? -3e38F : 3e38F; }},
    {"one huge among tiny", [](std::size_t i) { return i == 4 ? 3e38F : 1e-40F; }},
    {"one huge among normal", [](std::size_t i) { return i == 4 ? -3e38F : 1.0F; }},
    {"one normal among zeros", [](std::size_t i) { return i == 5 ? 1.0F : 0.0F; }},
    {"-0", [](std::size_t) { return -0.0F; }},
};

std::vector<TensorSpec> EdgeTensors() { return Tensors({{65}, {12, 16}, {7}, {1}}); }

Gradients Filled(std::span<const TensorSpec> tensors, int world, const EdgeCase& edge) {
  Row row;
  for (const TensorSpec& tensor : tensors) {
    Values values(tensor.numel());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = edge.value(i);
    row.push_back(std::move(values));
  }
  return Gradients(static_cast<std::size_t>(world), row);
}

TEST_P(EdgeInputs, GiveFiniteAveragesAndFiniteStates) {
  for (const EdgeCase& edge : kCases)
    for (int world : {1, 3}) {
      SCOPED_TRACE(std::string(edge.name) + ", ranks: " + std::to_string(world));
      Ranks ranks(spec(), world, EdgeTensors());
      const Gradients gradients = Filled(EdgeTensors(), world, edge);
      for (int step = 0; step < 5; ++step) {
        ranks.MustStep(gradients);
        for (const Values& average : ranks.averages()[0])
          ASSERT_TRUE(AllFinite(average)) << "step " << step;
        for (int rank = 0; rank < world; ++rank)
          for (const StateField& field : ranks.Fields(rank))
            ASSERT_TRUE(AllFinite(field.values)) << "step " << step << ", " << field.path;
      }
    }
}

TEST_P(EdgeInputs, ZerosGiveZeros) {
  for (int world : {1, 3}) {
    Ranks ranks(spec(), world, EdgeTensors());
    const Gradients zeros = Filled(EdgeTensors(), world, {"0", [](std::size_t) { return 0.0F; }});
    for (int step = 0; step < 3; ++step) {
      ranks.MustStep(zeros);
      for (const Values& average : ranks.averages()[0])
        EXPECT_EQ(average, Values(average.size(), 0.0F));
    }
  }
}

// A step of huge values leaves nothing behind that spoils ordinary ones, but for what error
// feedback rightly carries.
TEST_P(EdgeInputs, OrdinaryStepsFollowAZeroOne) {
  const std::vector<TensorSpec> tensors = EdgeTensors();
  Ranks ranks(spec(), 3, tensors);
  ranks.MustStep(Filled(tensors, 3, {"0", [](std::size_t) { return 0.0F; }}));
  ranks.MustStep(RandomGradients(tensors, 3, 1));
  for (const Values& average : ranks.averages()[0]) {
    double norm = 0;
    for (float value : average) norm += std::fabs(value);
    EXPECT_GT(norm, 0);
  }
}

// What a view holds, from an address that is a multiple of the element's size and of no more.
template <class T>
class Shifted {
 public:
  explicit Shifted(std::span<const T> values) : memory_(values.size() + 1), size_(values.size()) {
    std::copy(values.begin(), values.end(), memory_.begin() + 1);
  }
  T* data() { return memory_.data() + 1; }
  std::size_t size() const { return size_; }

 private:
  std::vector<T> memory_;
  std::size_t size_;
};

Status StepOnViews(Exchange& exchange, const std::vector<std::vector<ConstView>>& from,
                   const std::vector<std::vector<View>>& to) {
  const std::vector<std::span<const ConstView>> from_rows(from.begin(), from.end());
  const std::vector<std::span<const View>> to_rows(to.begin(), to.end());
  return exchange.Step(from_rows, to_rows, {});
}

TEST_P(EdgeInputs, ViewsMayStartAnywhere) {
  const std::vector<TensorSpec> tensors = EdgeTensors();
  Ranks aligned(spec(), 2, tensors), shifted(spec(), 2, tensors);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Gradients gradients = RandomGradients(tensors, 2, step);
    aligned.MustStep(gradients);
    std::vector<Shifted<float>> memory, results;
    std::vector<std::vector<ConstView>> from(2);
    std::vector<std::vector<View>> to(1);
    for (const Row& row : gradients)
      for (const Values& values : row) memory.emplace_back(std::span<const float>(values));
    for (const TensorSpec& tensor : tensors)
      results.emplace_back(std::span<const float>(Values(tensor.numel())));
    for (std::size_t m = 0; m < memory.size(); ++m)
      from[m / tensors.size()].emplace_back(In(memory[m].data(), memory[m].size()));
    for (Shifted<float>& result : results) to[0].emplace_back(Out(result.data(), result.size()));
    ASSERT_TRUE(StepOnViews(shifted.exchange(), from, to).ok());
    for (std::size_t t = 0; t < tensors.size(); ++t)
      EXPECT_TRUE(SameBits({results[t].data(), results[t].size()}, aligned.averages()[0][t]));
  }
}

// 16-bit gradients are widened on the way in and rounded on the way out, and nothing else: the
// averages are those of a run in fp32 on the widened values, rounded.
template <class T>
void ExpectLikeFp32(const std::string& spec) {
  std::vector<TensorSpec> wide = EdgeTensors(), narrow = wide;
  for (TensorSpec& tensor : narrow) tensor.dtype = kDTypeOf<T>;
  Ranks reference(spec, 2, wide);
  LockStepGroup group(2);
  auto exchange = Exchange::Create(group, Make(spec), narrow, {});
  ASSERT_TRUE(exchange.ok()) << exchange.status().message();
  for (std::uint64_t step = 0; step < 3; ++step) {
    Gradients gradients = RandomGradients(wide, 2, step);
    std::vector<Shifted<T>> memory, results;
    std::vector<std::vector<ConstView>> from(2);
    std::vector<std::vector<View>> to(1);
    for (Row& row : gradients)
      for (Values& values : row) {
        std::vector<T> codes(values.size());
        const View view(codes.data(), codes.size(), kDTypeOf<T>, Device::kCpu);
        kernels::Narrow({}, values, view, kernels::Overflow::kSaturate, nullptr);
        kernels::Widen({}, {codes.data(), codes.size(), kDTypeOf<T>, Device::kCpu}, values);
        memory.emplace_back(std::span<const T>(codes));
      }
    for (const TensorSpec& tensor : narrow)
      results.emplace_back(std::span<const T>(std::vector<T>(tensor.numel())));
    for (std::size_t m = 0; m < memory.size(); ++m)
      from[m / narrow.size()].emplace_back(memory[m].data(), memory[m].size(), kDTypeOf<T>,
                                           Device::kCpu);
    for (Shifted<T>& result : results)
      to[0].emplace_back(result.data(), result.size(), kDTypeOf<T>, Device::kCpu);
    reference.MustStep(gradients);
    ASSERT_TRUE(StepOnViews(**exchange, from, to).ok());
    for (std::size_t t = 0; t < narrow.size(); ++t) {
      std::vector<T> expected(narrow[t].numel());
      const View view(expected.data(), expected.size(), kDTypeOf<T>, Device::kCpu);
      kernels::Narrow({}, reference.averages()[0][t], view, kernels::Overflow::kSaturate, nullptr);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), results[t].data()))
          << "step " << step << ", tensor " << t;
    }
  }
}

TEST_P(EdgeInputs, Fp16GradientsAreTreatedAsTheirValues) { ExpectLikeFp32<half_bits>(spec()); }
TEST_P(EdgeInputs, Bf16GradientsAreTreatedAsTheirValues) { ExpectLikeFp32<bfloat16_bits>(spec()); }

SLIMGRAD_FOR_EVERY_SPEC(EdgeInputs);

}  // namespace
}  // namespace slimgrad::conformance
