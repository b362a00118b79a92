#include "core/executor.h"

#include <algorithm>
#include <atomic>
#include <unsupported/Eigen/CXX11/ThreadPool>

#include "core/check.h"

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

struct PoolExecutor::Pool {
  explicit Pool(int workers) : threads(workers) {}
  Eigen::ThreadPool threads;
};

PoolExecutor::PoolExecutor(int threads) {
  SLIMGRAD_CHECK(threads >= 1);
  if (threads > 1) pool_ = std::make_unique<Pool>(threads - 1);
}

PoolExecutor::~PoolExecutor() = default;

int PoolExecutor::concurrency() const { return pool_ ? pool_->threads.NumThreads() + 1 : 1; }

void PoolExecutor::Run(std::size_t tasks, TaskFunction task, void* context) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks; i = next++) task(context, i);
  };
  // A worker that waited for others could wait for itself.
  const bool nested = pool_ && pool_->threads.CurrentThreadId() >= 0;
  if (!pool_ || tasks < 2 || nested) return work();
  const auto workers = static_cast<std::size_t>(pool_->threads.NumThreads());
  const std::size_t helpers = std::min(workers, tasks - 1);
  Eigen::Barrier done(static_cast<unsigned>(helpers));
  for (std::size_t h = 0; h < helpers; ++h) {
    pool_->threads.Schedule([&work, &done] {  // two references: no allocation
      work();
      done.Notify();
    });
  }
  work();
  done.Wait();
}

}  // namespace slimgrad
