// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>

#if VARVE_USE_THREADS && !VARVE_USE_OPENMP
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

/// @file
/// A pool of threads of the standard library for the parts of long loops. `VARVE_USE_THREADS` uses it if OpenMP is off.
namespace varve::fusion {

/// True while this thread runs a part of a shared loop. Loops inside of the part are then not shared again.
inline constinit thread_local bool runs_a_part = false;

/// A pool of threads that wait for parts of loops. They start when they are first needed, and end with the process.
class thread_pool {
public:
  /// The function that runs a part, called with its data and the part's number.
  using part = void (*)(void const* data, int k);

  static thread_pool& of_process() {
    static thread_pool pool;
    return pool;
  }
  /// Returns how many threads share a loop, including the calling one.
  int size() const { return size_.load(std::memory_order_relaxed); }
  void resize(int n) { size_.store(n > 1 ? n : 1, std::memory_order_relaxed); }

  /// Calls `f(data, k)` for k = 0, 1, ..., parts - 1 on this thread and on those of the pool, and waits for all. While
  /// the pool works for another thread, this thread does everything alone. If parts throw, rethrows the exception of
  /// the part with the lowest number.
  void run(int parts, part f, void const* data) {
    std::unique_lock const mine(used_, std::try_to_lock);
    job now{f, data, parts};
    if (mine) {
      start((parts < size() ? parts : size()) - 1);
      {
        std::lock_guard const hold(lock_);
        job_ = &now, ++posted_;
      }
      begins_.notify_all();
    }
    work(now);
    if (mine) {
      std::unique_lock hold(lock_);
      job_ = nullptr;
      ended_.wait(hold, [&] { return working_ == 0; });
    }
    if (now.thrown) std::rethrow_exception(now.thrown);
  }
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;
  ~thread_pool() {
    {
      std::lock_guard const hold(lock_);
      stops_ = true;
    }
    begins_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

private:
  struct job {
    part f;
    void const* data;
    int parts;
    std::atomic<int> next{0};
    std::mutex throwing{};
    std::exception_ptr thrown{};
    int thrown_by = parts;
  };
  static constexpr int spins = 1 << 12; // a few microseconds, because a loop is often followed by another one

  thread_pool() = default;
  void start(int helpers) {
    helpers_.store(helpers, std::memory_order_relaxed);
    while (static_cast<int>(threads_.size()) < helpers) {
      int const index = static_cast<int>(threads_.size());
      threads_.emplace_back([this, index] { wait_and_work(index); });
    }
  }
  void wait_and_work(int index) {
    for (unsigned seen = 0;;) {
      for (int k = 0; k < spins && posted_.load(std::memory_order_relaxed) == seen; ++k) {}
      std::unique_lock hold(lock_);
      begins_.wait(hold, [&] { return stops_ || (job_ && posted_.load(std::memory_order_relaxed) != seen); });
      if (stops_) return;
      seen = posted_.load(std::memory_order_relaxed);
      if (index >= helpers_.load(std::memory_order_relaxed)) continue;
      job& now = *job_;
      ++working_;
      hold.unlock();
      work(now);
      hold.lock();
      if (--working_ == 0) ended_.notify_one();
    }
  }
  static void work(job& now) {
    bool const before = runs_a_part;
    runs_a_part = true;
    for (int k; (k = now.next.fetch_add(1, std::memory_order_relaxed)) < now.parts;)
      detail::attempt<void>([&] { now.f(now.data, k); },
                            [&] {
                              std::lock_guard const hold(now.throwing);
                              if (k < now.thrown_by) now.thrown_by = k, now.thrown = std::current_exception();
                            });
    runs_a_part = before;
  }

  std::mutex used_, lock_;
  std::condition_variable begins_, ended_;
  std::vector<std::thread> threads_;
  std::atomic<int> size_{
      static_cast<int>(std::thread::hardware_concurrency() > 1 ? std::thread::hardware_concurrency() : 1)},
      helpers_{0};
  std::atomic<unsigned> posted_{0};
  job* job_ = nullptr;
  int working_ = 0;
  bool stops_ = false;
};

} // namespace varve::fusion
#endif
