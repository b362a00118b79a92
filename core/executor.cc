#include "core/executor.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <semaphore>
#include <system_error>
#include <thread>
#include <unsupported/Eigen/CXX11/ThreadPool>
#include <utility>
#include <vector>

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

// Whether this thread runs a task of a pool, whichever.
thread_local bool inside_task = false;

class InsideTask {
 public:
  ~InsideTask() { inside_task = before_; }

 private:
  bool before_ = std::exchange(inside_task, true);
};

// A thread that is started before it is known what for. Without work it ends with the object, else
// with its work.
class Worker {
 public:
  Worker() : thread_([this] { Work(); }) {}  // throws std::system_error
  ~Worker() {
    if (!work_) begin_.release();
    thread_.join();
  }
  void Begin(std::function<void()> work) {
    work_ = std::move(work);
    begin_.release();
  }

 private:
  void Work() {
    begin_.acquire();
    if (work_) work_();
  }

  std::function<void()> work_;
  std::binary_semaphore begin_{0};
  std::thread thread_;  // uses the others
};

using Workers = std::vector<std::unique_ptr<Worker>>;

// At most so many: as many as the system starts.
Workers StartWorkers(int most) {
  Workers started;
  try {
    while (started.size() < static_cast<std::size_t>(most))
      started.push_back(std::make_unique<Worker>());
  } catch (const std::system_error&) {
    // Fewer, then.
  }
  return started;
}

// Where Eigen's pool takes its threads from. By itself it starts them in its constructor, where one
// that does not start leaves the others waiting for ever.
struct StartedThreads : Eigen::StlThreadEnvironment {
  using EnvThread = Worker;
  Worker* CreateThread(std::function<void()> work) {
    Worker* const worker = workers->back().release();
    workers->pop_back();
    worker->Begin(std::move(work));
    return worker;
  }
  Workers* workers;
};

}  // namespace

Executor& InlineExecutor() {
  static Inline executor;
  return executor;
}

struct PoolExecutor::Pool {
  explicit Pool(Workers workers)
      : threads(static_cast<int>(workers.size()), StartedThreads{{}, &workers}) {}
  Eigen::ThreadPoolTempl<StartedThreads> threads;
};

PoolExecutor::PoolExecutor(int threads) {
  SLIMGRAD_CHECK(threads >= 1);
  Workers workers = StartWorkers(threads - 1);
  if (!workers.empty()) pool_ = std::make_unique<Pool>(std::move(workers));
}

PoolExecutor::~PoolExecutor() = default;

int PoolExecutor::concurrency() const { return pool_ ? pool_->threads.NumThreads() + 1 : 1; }

void PoolExecutor::Run(std::size_t tasks, TaskFunction task, void* context) {
  // A worker that waited for others could wait for itself, or for one that waits for it.
  if (!pool_ || tasks < 2 || inside_task) {
    for (std::size_t i = 0; i < tasks; ++i) task(context, i);
    return;
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    const InsideTask inside;
    for (std::size_t i = next++; i < tasks; i = next++) task(context, i);
  };
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
