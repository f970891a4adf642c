// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>
#include <varve/value/storage.hpp>

namespace varve {

/// Everything the dispatcher keeps of a thread, taken where it is made and put in place on another by `restored`
/// (`ThreadLocalState`, DK-10): included and excluded keys, transforms, modes of all stacks, grad and inference mode.
/// It borrows the layers: the transforms and guards it was taken under must outlive its use. Identities of new layers
/// stay the other thread's own.
class thread_snapshot {
public:
  thread_snapshot() : state_(this_thread_state) {}

  /// Is a transform at work that writes down what it sees, so that its operators must come from one thread?
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

/// Puts a snapshot in place on this thread for the life of the object; afterwards all is as before, after an exception
/// too.
class restored {
public:
  explicit restored(thread_snapshot const& s) : saved_(this_thread_state) {
    put(s.state_);
    this_thread_state.borrowed = true;
    this_thread_inference = s.inference_;
    this_thread_epoch = s.epoch_; // what is made here is made while the transforms run
  }
  restored(restored const&) = delete;
  restored& operator=(restored const&) = delete;
  ~restored() {
    put(saved_);
    this_thread_inference = inference_;
    this_thread_epoch = epoch_;
  }

private:
  /// Numbers of layers and nodes go on.
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

/// A function that runs under the state of the thread that called `carry`, wherever it is called: for callbacks and
/// `std::async`.
template <class F>
auto carry(F f) {
  return [f = static_cast<F&&>(f), s = thread_snapshot()](auto&&... x) mutable -> decltype(auto) {
    restored const here(s);
    return f(static_cast<decltype(x)&&>(x)...);
  };
}

} // namespace varve
