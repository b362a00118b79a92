// Private to the cpu kernels: how a loop is cut into tasks. The cut never shows in a result: tasks
// write disjoint memory, and sums have their own shape. Nothing is allocated.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/blocks.h"

namespace slimgrad::kernels::cpu {

// Elements a task: large enough to pay for a task, small enough to balance threads. A multiple of
// 8, so that tasks over bits own whole bytes.
inline constexpr std::size_t kTaskElements = std::size_t{1} << 15;

// Whether an output of so many bytes is better streamed past the caches: it would not be in them
// when it is read again, and would push out what is.
inline bool OutgrowsCaches(std::size_t bytes) { return bytes >= std::size_t{1} << 22; }

// Calls run(begin, end) for consecutive ranges of [0, n), each of `step` items except the last one.
template <class RunRange>
void ForRanges(const Backend& backend, std::size_t n, std::size_t step, RunRange&& run) {
  backend.executor->ParallelFor(BlockCount(n, step), [&](std::size_t task) {
    const std::size_t begin = task * step;
    run(begin, begin + std::min(step, n - begin));
  });
}

// The same for elements.
template <class RunRange>
void ForElements(const Backend& backend, std::size_t n, RunRange&& run) {
  ForRanges(backend, n, kTaskElements, run);
}

// The same for items (rows, blocks) of `size` elements each.
template <class RunRange>
void ForItems(const Backend& backend, std::size_t items, std::size_t size, RunRange&& run) {
  ForRanges(backend, items,
            std::max<std::size_t>(1, kTaskElements / std::max<std::size_t>(1, size)), run);
}

// ForElements, adding to *total, if there is one, what run(begin, end) returns.
template <class RunRange>
void CountOver(const Backend& backend, std::size_t n, std::uint64_t* total, const RunRange& run) {
  std::atomic<std::uint64_t> sum = 0;
  ForElements(backend, n, [&](std::size_t begin, std::size_t end) {
    const std::uint64_t count = run(begin, end);
    if (count > 0) sum.fetch_add(count, std::memory_order_relaxed);
  });
  if (total != nullptr) *total += sum;
}

}  // namespace slimgrad::kernels::cpu
