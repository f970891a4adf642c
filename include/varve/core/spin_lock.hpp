// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <type_traits>

namespace varve::detail {

/// A lock for the few instructions that read a list or replace a table. It takes one byte, and avoids including
/// `<mutex>` in every translation unit. A copy is a separate, free lock, so that classes with a lock can be copied. In
/// constant expressions it does nothing.
class spin_lock {
public:
  constexpr spin_lock() = default;
  constexpr spin_lock(spin_lock const&) noexcept {}
  constexpr spin_lock& operator=(spin_lock const&) noexcept { return *this; }

  /// A guard that holds the lock as long as it lives.
  class held {
  public:
    constexpr explicit held(spin_lock& l) : lock_(l) {
      if (!std::is_constant_evaluated()) lock_.acquire();
    }
    held(held const&) = delete;
    held& operator=(held const&) = delete;
    constexpr ~held() {
      if (!std::is_constant_evaluated()) lock_.busy_.clear(std::memory_order_release);
    }

  private:
    spin_lock& lock_;
  };
  /// Runs `f` with the lock held.
  template <class F>
  constexpr void operator()(F const& f) {
    held const on(*this);
    f();
  }

private:
  void acquire() {
    while (busy_.test_and_set(std::memory_order_acquire))
      while (busy_.test(std::memory_order_relaxed)) {
      } // waiting threads only read, so that the cache line stays with the holder
  }
  std::atomic_flag busy_{};
};

} // namespace varve::detail
