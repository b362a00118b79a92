#include "core/executor.h"

#include <atomic>
#include <thread>
#include <vector>

namespace slimgrad {
namespace {

class Inline final : public Executor {
 public:
  int concurrency() const override { return 1; }

 private:
  void Run(std::size_t tasks, TaskFunction task, void* context) override {
    for (std::size_t i = 0; i < tasks; ++i) task(context, i);
  }
};

}  // namespace

Executor& InlineExecutor() {
  static Inline executor;
  return executor;
}

void ThreadExecutor::Run(std::size_t tasks, TaskFunction task, void* context) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks; i = next++) task(context, i);
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads_; ++t) others.emplace_back(work);
  work();
}

}  // namespace slimgrad
