// Where a kernel's blocks run. Threads are the caller's: the library starts none by itself.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace slimgrad {

// A kernel's result never depends on the executor: tasks write disjoint memory, and sums have a
// fixed shape.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs task(0) ... task(tasks - 1), each once, in any order and on any thread, and returns when
  // all are done. The task is borrowed, not copied: nothing is allocated.
  template <class Task>
  void ParallelFor(std::size_t tasks, Task&& task) {
    using T = std::remove_reference_t<Task>;
    Run(
        tasks, [](void* context, std::size_t i) { (*static_cast<T*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

  // How many tasks may run at once, at least 1; a hint for how finely to cut.
  virtual int concurrency() const = 0;

 protected:
  using TaskFunction = void (*)(void* context, std::size_t i);
  virtual void Run(std::size_t tasks, TaskFunction task, void* context) = 0;
};

// Runs everything on the calling thread. The default; safe to share.
Executor& InlineExecutor();

// A pool: the calling thread and `threads` - 1 of its own, which live as long as the executor and
// sleep between calls. Where the system starts fewer there are fewer: concurrency() says how many.
//
// Many threads may call at once. A task, unless it is the only one, that calls ParallelFor of this
// pool or of another runs those tasks inline: a worker never waits, so pools may call each other.
class PoolExecutor final : public Executor {
 public:
  explicit PoolExecutor(int threads);  // at least 1 (CHECKed)
  ~PoolExecutor() override;
  int concurrency() const override;

 private:
  void Run(std::size_t tasks, TaskFunction task, void* context) override;

  struct Pool;
  std::unique_ptr<Pool> pool_;  // null without threads of its own
};

}  // namespace slimgrad
