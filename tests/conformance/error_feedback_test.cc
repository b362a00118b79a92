// Error feedback loses nothing: the sum of all averages plus the mean of what the ranks still hold
// is the sum of the mean gradients, to rounding.
#include <cmath>
#include <optional>

#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

class ErrorFeedbackLosesNothing : public ForEverySpec {};

constexpr int kSteps = 20;

// One tensor's books in fp64.
struct Books {
  explicit Books(std::size_t n) : in(n), out(n), tolerance(n) {}
  std::vector<double> in, out, tolerance;
};

// Nothing where error feedback is deeper within: it takes no other around it, and the tensors that
// it does not concern have no books.
std::optional<std::string> Wrapped(const std::string& spec) {
  if (spec.starts_with("error_feedback(")) return spec;
  if (HasErrorFeedback(spec)) return {};
  return "error_feedback(" + spec + ")";
}

// Per step and element, with c = g + e a rank's corrected gradient, x what it sent and e' = c - x:
// one rounding of c, one of e', and world + 1 of the sum and the division, each at most kUnit of
// the value or of what is added up. Four operations on top for products of low rank.
void Book(Ranks& ranks, const Gradients& gradients, const std::vector<Row>& before, std::size_t t,
          Books& books) {
  const int world = ranks.world();
  const WireRounding wire = RoundingOf(ranks.exchange().plans()[t]);
  const Values& average = ranks.averages()[0][t];
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    const Values after = FieldOf(ranks.exchange().state(r, t), "residual");
    ASSERT_EQ(after.size(), average.size());
    for (std::size_t i = 0; i < average.size(); ++i) {
      const double g = gradients[r][t][i], kept = std::fabs(after[i]);
      const double corrected = std::fabs(g + static_cast<double>(before[r][t][i]));
      books.in[i] += g / world;
      books.tolerance[i] +=
          kUnit * (corrected + kept + (world + 5) * (corrected + kept)) / world + 0x1p-149;
    }
  }
  for (std::size_t i = 0; i < average.size(); ++i) {
    books.out[i] += static_cast<double>(average[i]);
    // The residual of low rank subtracts the average itself, which lies in no rank's own range.
    books.tolerance[i] += kUnit * (world + 5) * std::fabs(average[i]);
    if (world > 1) books.tolerance[i] += wire.relative * std::fabs(average[i]) + wire.absolute;
  }
}

std::vector<Row> Residuals(Ranks& ranks) {
  std::vector<Row> rows(static_cast<std::size_t>(ranks.world()));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t t = 0; t < ranks.exchange().tensors().size(); ++t)
      rows[r].push_back(FieldOf(ranks.exchange().state(r, t), "residual"));
  return rows;
}

void ExpectBalanced(const std::string& spec, int world, const std::vector<TensorSpec>& tensors) {
  SCOPED_TRACE(spec + ", ranks: " + std::to_string(world));
  Ranks ranks(spec, world, tensors);
  std::vector<Books> books;
  for (const TensorSpec& tensor : tensors) books.emplace_back(tensor.numel());
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const std::vector<Row> before = Residuals(ranks);
    const Gradients gradients = RandomGradients(tensors, world, step);
    ranks.MustStep(gradients);
    for (std::size_t t = 0; t < tensors.size(); ++t) Book(ranks, gradients, before, t, books[t]);
  }
  const std::vector<Row> last = Residuals(ranks);
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (std::size_t i = 0; i < books[t].in.size(); ++i) {
      double kept = 0;
      for (const Row& row : last) kept += static_cast<double>(row[t][i]) / world;
      ASSERT_NEAR(books[t].out[i] + kept, books[t].in[i], books[t].tolerance[i])
          << tensors[t].name << "[" << i << "]";
    }
}

TEST_P(ErrorFeedbackLosesNothing, OnOneRankAndOnMany) {
  const auto wrapped = Wrapped(spec());
  if (!wrapped) return;
  for (int world : {1, 2, 3, 4, 5, 7}) ExpectBalanced(*wrapped, world, UsualTensors());
}

TEST_P(ErrorFeedbackLosesNothing, ForEveryShape) {
  const auto wrapped = Wrapped(spec());
  if (!wrapped) return;
  ExpectBalanced(
      *wrapped, 2,
      Tensors({{0}, {1}, {2}, {3}, {7}, {63}, {64}, {65}, {1, 9}, {9, 1}, {7, 13}, {2, 3, 5}}));
}

SLIMGRAD_FOR_EVERY_SPEC(ErrorFeedbackLosesNothing);

// The sums above would balance, too, if nothing were ever sent. What is held back stays bounded:
// for a contractive method with delta d, |e|^2 <= 4 (1 - d) / d^2 max|g|^2 (Karimireddy et al.
// 2019, lemma 3).
TEST(ErrorFeedback, HoldsBackABoundedAmount) {
  const std::vector<TensorSpec> tensors = Tensors({{200}});
  for (const char* inner : {"top_k(ratio=0.05)", "int8(block=32)", "scaled_sign(block=20)"}) {
    const double delta = Make(inner).MakePlan(tensors[0])->traits.delta.value();
    Ranks ranks("error_feedback(" + std::string(inner) + ")", 1, tensors);
    double largest = 0;
    for (std::uint64_t step = 0; step < 200; ++step) {
      const Gradients gradients = RandomGradients(tensors, 1, step);
      double norm = 0, residual = 0;
      for (float g : gradients[0][0]) norm += static_cast<double>(g) * static_cast<double>(g);
      largest = std::max(largest, norm);
      ranks.MustStep(gradients);
      for (float e : FieldOf(ranks.exchange().state(0, 0), "residual"))
        residual += static_cast<double>(e) * static_cast<double>(e);
      ASSERT_GT(residual, 0);
      ASSERT_LE(residual, 4 * (1 - delta) / (delta * delta) * largest) << inner << " step " << step;
    }
  }
}

}  // namespace
}  // namespace slimgrad::conformance
