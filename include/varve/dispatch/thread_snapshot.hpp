// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>

namespace varve {

/// Everything the dispatcher keeps of a thread, taken where it is made and put in place on another by `restored` (`ThreadLocalState`, DK-10): included and excluded keys,
/// transforms, modes of all stacks. It borrows the layers: the transforms and guards it was taken under must outlive its use. Identities of new layers stay the other
/// thread's own.
class thread_snapshot {
public:
  thread_snapshot() : state_(this_thread_state) {}

  /// Is a transform at work that writes down what it sees, so that its operators must come from one thread?
  bool records() const {
    for (layer const* l = state_.transforms.top; l; l = l->below)
      if (l->records) return true;
    return false;
  }

private:
  friend class restored;
  thread_state state_;
};

/// Puts a snapshot in place on this thread for the life of the object; afterwards all is as before, after an exception too.
class restored {
public:
  explicit restored(thread_snapshot const& s) : saved_(this_thread_state) {
    std::uint64_t const id = this_thread_state.next_id;
    this_thread_state = s.state_;
    this_thread_state.next_id = id;
  }
  restored(restored const&) = delete;
  restored& operator=(restored const&) = delete;
  ~restored() {
    std::uint64_t const id = this_thread_state.next_id;
    this_thread_state = saved_;
    this_thread_state.next_id = id;
  }

private:
  thread_state saved_;
};

/// A function that runs under the state of the thread that called `carry`, wherever it is called: for callbacks and `std::async`.
template <class F>
auto carry(F f) {
  return [f = static_cast<F&&>(f), s = thread_snapshot()](auto&&... x) mutable -> decltype(auto) {
    restored const here(s);
    return f(static_cast<decltype(x)&&>(x)...);
  };
}

} // namespace varve
