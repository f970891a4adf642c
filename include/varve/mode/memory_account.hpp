// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/value/storage.hpp>

#include <atomic>

namespace varve::detail {

/// A counter of the bytes of storages. Owned by the mode and by each counted storage, which may outlive the mode.
class memory_account : public storage_observer {
public:
  memory_account() {
    allocated = [](storage_observer& self, std::size_t bytes) { static_cast<memory_account&>(self).add(bytes); };
    freed = [](storage_observer& self, std::size_t bytes) { static_cast<memory_account&>(self).remove(bytes); };
  }
  void drop() {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  std::atomic<std::size_t> live{0}, peak{0}, total{0};

private:
  ~memory_account() = default;
  void add(std::size_t bytes) {
    owners_.fetch_add(1, std::memory_order_relaxed);
    total.fetch_add(bytes, std::memory_order_relaxed);
    std::size_t const now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {}
  }
  void remove(std::size_t bytes) {
    live.fetch_sub(bytes, std::memory_order_relaxed);
    drop();
  }
  std::atomic<std::size_t> owners_{1};
};
/// A combination of two observers, for storages that nested trackers see.
class both_observers : public storage_observer {
public:
  both_observers(storage_observer& a, storage_observer& b) : a_(a), b_(b) {
    allocated = [](storage_observer& self, std::size_t bytes) {
      auto& s = static_cast<both_observers&>(self);
      s.owners_.fetch_add(1, std::memory_order_relaxed);
      s.a_.allocated(s.a_, bytes);
      s.b_.allocated(s.b_, bytes);
    };
    freed = [](storage_observer& self, std::size_t bytes) {
      auto& s = static_cast<both_observers&>(self);
      s.a_.freed(s.a_, bytes);
      s.b_.freed(s.b_, bytes);
      s.drop();
    };
  }
  void drop() {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

private:
  ~both_observers() = default;
  storage_observer &a_, &b_;
  std::atomic<std::size_t> owners_{1};
};
/// A scope that counts what this thread allocates, in addition to accounts that are active already. An account that is
/// active already does not count twice.
class observed_scope {
public:
  explicit observed_scope(memory_account& account)
      : account_(account), before_(this_thread_storage_observer), around_(innermost()) {
    for (observed_scope* s = around_; s; s = s->around_)
      if (&s->account_ == &account) return;
    if (before_) both_ = new both_observers(*before_, account);
    this_thread_storage_observer = both_ ? static_cast<storage_observer*>(both_) : &account;
    innermost() = this;
  }
  observed_scope(observed_scope const&) = delete;
  observed_scope& operator=(observed_scope const&) = delete;
  ~observed_scope() {
    innermost() = around_;
    this_thread_storage_observer = before_;
    if (both_) both_->drop();
  }

private:
  static observed_scope*& innermost() {
    static constinit thread_local observed_scope* top = nullptr;
    return top;
  }
  memory_account& account_;
  storage_observer* before_;
  observed_scope* around_;
  both_observers* both_ = nullptr;
};

} // namespace varve::detail

#pragma GCC diagnostic pop
