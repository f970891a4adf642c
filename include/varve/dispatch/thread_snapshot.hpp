// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>
#include <varve/value/storage.hpp>

namespace varve {

/// The dispatcher's state of the thread that makes the object, to be used on another thread by `restored`
/// (`ThreadLocalState`). It contains the included and excluded keys, transforms, modes of all stacks, and grad and
/// inference mode. It borrows the layers: the transforms and guards under which it was made must outlive its use. Each
/// thread continues to make its own identities of new layers.
class thread_snapshot {
public:
  thread_snapshot() : state_(this_thread_state) {}

  /// True if a running transform records its operators, which must then come from one thread.
  bool records() const {
    for (layer const* l = state_.transforms.top; l; l = l->below)
      if (l->kind->records) return true;
    return false;
  }

private:
  friend class restored;
  thread_state state_;
  bool inference_ = this_thread_inference;
  std::uint32_t epoch_ = this_thread_epoch;
};

/// A scope in which this thread has the state of a snapshot. The previous state is restored on every exit.
class restored {
public:
  explicit restored(thread_snapshot const& s) : saved_(this_thread_state) {
    put(s.state_);
    this_thread_state.borrowed = true;
    this_thread_inference = s.inference_;
    this_thread_epoch = s.epoch_; // memory allocated here counts as allocated while the transforms run
  }
  restored(restored const&) = delete;
  restored& operator=(restored const&) = delete;
  ~restored() {
    put(saved_);
    this_thread_inference = inference_;
    this_thread_epoch = epoch_;
  }

private:
  /// Applies a state. The thread's own numbers of layers and nodes continue.
  static void put(thread_state const& s) {
    std::uint64_t const id = this_thread_state.next_id, number = this_thread_state.next_node;
    this_thread_state = s;
    this_thread_state.next_id = id;
    this_thread_state.next_node = number;
  }
  thread_state saved_;
  bool inference_ = this_thread_inference;
  std::uint32_t epoch_ = this_thread_epoch;
};

/// Returns a function that runs under the state of the thread that called `carry`, wherever it is called: for callbacks
/// and `std::async`.
template <class F>
auto carry(F f) {
  return [f = static_cast<F&&>(f), s = thread_snapshot()](auto&&... x) mutable -> decltype(auto) {
    restored const here(s);
    return f(static_cast<decltype(x)&&>(x)...);
  };
}

} // namespace varve
