// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>

namespace varve {

namespace detail {
/// The transforms that run on all threads, by identity. They distinguish a value of a running transform from a value of
/// one that has ended. A layer has one entry in the table, and entering it takes three memory accesses. If two layers
/// share an entry, which is rare, the later one is found.
class working_layers {
public:
  /// Enters a layer. Returns its identity, or 0 if it is in the table already.
  static std::uint64_t enter(std::uint64_t id) {
    place& p = place_of(id);
    if (p.id.load(std::memory_order_relaxed) == id) return 0;
    p.on.store(&this_thread_state, std::memory_order_relaxed);
    p.id.store(id, std::memory_order_release);
    return id;
  }
  static void leave(std::uint64_t id) { place_of(id).id.compare_exchange_strong(id, 0, std::memory_order_relaxed); }
  /// True if a layer runs on another thread, and this thread does not use the state of another one.
  static bool elsewhere(std::uint64_t id) {
    place& p = place_of(id);
    return p.id.load(std::memory_order_acquire) == id && p.on.load(std::memory_order_relaxed) != &this_thread_state &&
           !this_thread_state.borrowed;
  }

private:
  static constexpr int bits = 9;
  struct place {
    std::atomic<std::uint64_t> id;
    std::atomic<thread_state const*> on;
  };
  static place& place_of(std::uint64_t id) {
    static constinit place places[1 << bits]{};
    return places[id * 0x9E3779B97F4A7C15u >> (64 - bits)];
  }
};
} // namespace detail

/// A scope with a layer on top of a stack.
class pushed {
public:
  pushed(layer_stack& stack, layer& l) : stack_(stack), saved_(stack.top) {
    name(l, stack);
    if (stack.key == dispatch_key::transform) entered_ = detail::working_layers::enter(l.id);
    detail::set_top(stack_, &l);
  }
  /// Sets the position and identity of a layer before it is pushed.
  static void name(layer& l, layer_stack const& stack) {
    l.below = stack.top;
    l.level = stack.top ? stack.top->level + 1 : 1;
    if (!l.id) l.id = next_layer_id(), l.epoch = detail::begin_epoch();
  }
  pushed(pushed const&) = delete;
  pushed& operator=(pushed const&) = delete;
  ~pushed() {
    if (entered_) detail::working_layers::leave(entered_);
    detail::set_top(stack_, saved_);
  }

private:
  layer_stack& stack_;
  layer* saved_;
  std::uint64_t entered_ = 0;
};

namespace detail {
/// A scope in which a layer is back on its stack, while a function that it passed down runs. The stack is restored on
/// exit.
class reentered {
public:
  reentered(layer_stack& stack, layer& l) : stack_(stack), layer_(l), top_(stack.top), below_(l.below) {
    if (l.below != stack.top) l.below = stack.top; // not written needlessly: another thread may be reading it
    set_top(stack_, &l);
  }
  reentered(reentered const&) = delete;
  reentered& operator=(reentered const&) = delete;
  ~reentered() {
    if (layer_.below != below_) layer_.below = below_;
    set_top(stack_, top_);
  }

private:
  layer_stack& stack_;
  layer& layer_;
  layer *top_, *below_;
};
} // namespace detail

} // namespace varve
