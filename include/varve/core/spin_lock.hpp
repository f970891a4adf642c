// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <type_traits>

namespace varve::detail {

/// Keeps threads apart for the few instructions that a list is read or a table replaced: one byte, and no `<mutex>` in
/// every unit. A copy is a lock of its own, so that what holds one can be copied. In constant expressions nothing is
/// done.
class spin_lock {
public:
  constexpr spin_lock() = default;
  constexpr spin_lock(spin_lock const&) noexcept {}
  constexpr spin_lock& operator=(spin_lock const&) noexcept { return *this; }

  /// Holds the lock for the life of the object.
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
      } // waiting threads read only, which leaves the line to the one that holds it
  }
  std::atomic_flag busy_{};
};

} // namespace varve::detail
