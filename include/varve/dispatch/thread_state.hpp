// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <cstdint>
#include <varve/core/attributes.hpp>
#include <varve/dispatch/boxed.hpp>

namespace varve {

/// One interpreter on the thread's stack: it lives on the C++ stack of the transform or `mode_guard` that pushed it and links to the one below.
struct layer {
  layer* below = nullptr;
  /// Position in its stack, from 1.
  int level = 0;
  /// Never reused: tells values of this layer from those of an earlier one at the same level.
  std::uint64_t id = 0;
  /// "grad", "jvp", "vmap", "mode": for messages.
  char const* kind = "";
  tensor (*process)(layer& self, boxed_op const& op, boxed_args const& args) = nullptr;
};

/// Everything the dynamic world keeps per thread: one trivially destructible `constinit` struct, so that reading it costs one load.
struct thread_state {
  /// Transforms (`grad`, `vmap`, ...), innermost first. They process a call before any mode does.
  layer* transforms = nullptr;
  /// Modes switched on by `mode_guard`, last first.
  layer* modes = nullptr;
  std::uint64_t next_id = 0;

  bool quiet() const { return !transforms && !modes; }
};
inline constinit thread_local thread_state this_thread_state{};

/// An identity that no layer of any thread had before. Threads draw blocks of them.
inline std::uint64_t next_layer_id() {
  constexpr int block_bits = 20;
  static std::atomic<std::uint64_t> blocks{0};
  std::uint64_t& next = this_thread_state.next_id;
  if ((next & ((std::uint64_t{1} << block_bits) - 1)) == 0) next = (blocks.fetch_add(1, std::memory_order_relaxed) << block_bits) + 1;
  return next++;
}

/// Takes the top of a stack away while it runs, and puts it back on every exit (MD-8: pop, not key-juggling).
class popped {
public:
  explicit popped(layer*& stack) : stack_(stack), saved_(stack) { stack_ = saved_->below; }
  popped(popped const&) = delete;
  popped& operator=(popped const&) = delete;
  ~popped() { stack_ = saved_; }
  layer& top() const { return *saved_; }

private:
  layer*& stack_;
  layer* saved_;
};

/// Puts a layer on a stack for the life of the object.
class pushed {
public:
  pushed(layer*& stack, layer& l) : stack_(stack), saved_(stack) {
    name(l, stack);
    stack_ = &l;
  }
  /// Gives a layer its place and identity ahead of being pushed.
  static void name(layer& l, layer* stack) {
    l.below = stack;
    l.level = stack ? stack->level + 1 : 1;
    if (!l.id) l.id = next_layer_id();
  }
  pushed(pushed const&) = delete;
  pushed& operator=(pushed const&) = delete;
  ~pushed() { stack_ = saved_; }

private:
  layer*& stack_;
  layer* saved_;
};

} // namespace varve
