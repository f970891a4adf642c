// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/single_threaded.hpp>

#include <atomic>

namespace varve::detail {

/// A recursive lock for sections that may run user code: the thread that holds it may lock it again, and other threads
/// sleep. It takes one word.
class owner_lock {
public:
  owner_lock() = default;
  owner_lock(owner_lock const&) = delete;
  owner_lock& operator=(owner_lock const&) = delete;

  /// A guard that holds the lock as long as it lives.
  class held {
  public:
    explicit held(owner_lock& l) : lock_(l), first_(l.take()) {}
    held(held const&) = delete;
    held& operator=(held const&) = delete;
    ~held() {
      if (!first_) return;
      lock_.owner_.store(nullptr, std::memory_order_release);
      if (!single_threaded()) lock_.owner_.notify_one();
    }

  private:
    owner_lock& lock_;
    bool first_;
  };

private:
  /// Acquires the lock. Returns true if it was free, and false if this thread held it already.
  bool take() {
    static constinit thread_local char here = 0; // its address identifies the thread
    if (single_threaded()) {                     // threads that start later see the new owner
      bool const free = !owner_.load(std::memory_order_relaxed);
      owner_.store(&here, std::memory_order_relaxed);
      return free;
    }
    void const* seen = nullptr;
    while (!owner_.compare_exchange_weak(seen, &here, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (seen == &here) return false;
      if (seen) owner_.wait(seen, std::memory_order_relaxed);
      seen = nullptr;
    }
    return true;
  }
  std::atomic<void const*> owner_{nullptr};
};

} // namespace varve::detail
