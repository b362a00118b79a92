// Steady-state steps allocate nothing on the heap. This program replaces operator new by one that
// counts.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/conformance/harness.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<std::size_t> allocations = 0;

void* Allocate(std::size_t size, std::size_t alignment) {
  if (counting) ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace slimgrad::conformance {
namespace {

class Allocations : public ForEverySpec {};

// Steps 3 to 5 with everything that a step needs made before.
std::size_t AllocationsIn(const std::string& spec, const std::vector<TensorSpec>& tensors) {
  constexpr int kWorld = 3;
  Ranks ranks(spec, kWorld, tensors);
  for (std::uint64_t step = 0; step < 3; ++step)
    ranks.MustStep(RandomGradients(tensors, kWorld, step));
  std::vector<Gradients> later;
  for (std::uint64_t step = 3; step < 6; ++step)
    later.push_back(RandomGradients(tensors, kWorld, step));
  allocations = 0;
  for (const Gradients& gradients : later) {
    std::vector<std::vector<ConstView>> from;
    std::vector<std::vector<View>> to;
    for (const Row& row : gradients) from.emplace_back(row.begin(), row.end());
    for (Row& row : ranks.averages()) to.emplace_back(row.begin(), row.end());
    const std::vector<std::span<const ConstView>> from_rows(from.begin(), from.end());
    const std::vector<std::span<const View>> to_rows(to.begin(), to.end());
    counting = true;
    const Status status = ranks.exchange().Step(from_rows, to_rows, {});
    counting = false;
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return allocations;
}

TEST(Counting, Counts) {
  allocations = 0;
  counting = true;
  std::vector<int>* volatile escapes = new std::vector<int>(100);
  counting = false;
  delete escapes;
  EXPECT_EQ(allocations, 2U);
}

TEST_P(Allocations, NoneInSteadyState) { EXPECT_EQ(AllocationsIn(spec(), UsualTensors()), 0U); }

TEST_P(Allocations, NoneInSteadyStateUnderErrorFeedback) {
  EXPECT_EQ(AllocationsIn("error_feedback(" + spec() + ")", UsualTensors()), 0U);
}

SLIMGRAD_FOR_EVERY_SPEC(Allocations);

}  // namespace
}  // namespace slimgrad::conformance
