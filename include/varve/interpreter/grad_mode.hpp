// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>

namespace varve {

/// True if operators of this thread are recorded for `backward` (`torch.is_grad_enabled`).
inline bool is_grad_enabled() { return this_thread_state.grad_mode && !this_thread_inference; }

/// Sets whether operators are recorded, for the lifetime of the object (`torch.set_grad_enabled`). Inside a transform
/// it applies to that level; outside, to the levels below those entered later.
class set_grad_enabled {
public:
  explicit set_grad_enabled(bool on) : before_(this_thread_state.grad_mode) { this_thread_state.grad_mode = on; }
  set_grad_enabled(set_grad_enabled const&) = delete;
  set_grad_enabled& operator=(set_grad_enabled const&) = delete;
  ~set_grad_enabled() { this_thread_state.grad_mode = before_; }

private:
  bool before_;
};
/// Disables the recording of operators. They still count versions.
struct no_grad : set_grad_enabled {
  no_grad() : set_grad_enabled(false) {}
};
/// Enables the recording of operators, even inside `no_grad`.
struct enable_grad : set_grad_enabled {
  enable_grad() : set_grad_enabled(true) {}
};
/// Disables recording like `no_grad`. In addition, tensors made under it never get a history or a version counter.
/// `inference_mode(false)` inside another one ends both effects.
class inference_mode : set_grad_enabled {
public:
  explicit inference_mode(bool on = true) : set_grad_enabled(!on), before_(this_thread_inference) {
    this_thread_inference = on;
  }
  ~inference_mode() { this_thread_inference = before_; }

private:
  bool before_;
};
/// True if this thread is in inference mode.
inline bool is_inference_mode_enabled() { return this_thread_inference; }

} // namespace varve
