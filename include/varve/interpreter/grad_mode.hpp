// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>

namespace varve {

/// Are operators of this thread recorded for `backward` (`torch.is_grad_enabled`)?
inline bool is_grad_enabled() { return this_thread_state.grad_mode && !this_thread_inference; }

/// Says whether operators are recorded, for the life of the object (`torch.set_grad_enabled`). Inside of a transform it
/// counts for that level; outside, for the levels below those entered later (FS-8).
class set_grad_enabled {
public:
  explicit set_grad_enabled(bool on) : before_(this_thread_state.grad_mode) { this_thread_state.grad_mode = on; }
  set_grad_enabled(set_grad_enabled const&) = delete;
  set_grad_enabled& operator=(set_grad_enabled const&) = delete;
  ~set_grad_enabled() { this_thread_state.grad_mode = before_; }

private:
  bool before_;
};
/// Operators are not recorded. They still count versions (DT-2).
struct no_grad : set_grad_enabled {
  no_grad() : set_grad_enabled(false) {}
};
/// Operators are recorded, also inside of `no_grad`.
struct enable_grad : set_grad_enabled {
  enable_grad() : set_grad_enabled(true) {}
};
/// As `no_grad`, and what is made has neither history nor version counter for ever (AG-20). `inference_mode(false)`
/// inside of one switches both off.
class inference_mode : set_grad_enabled {
public:
  explicit inference_mode(bool on = true) : set_grad_enabled(!on), before_(this_thread_inference) {
    this_thread_inference = on;
  }
  ~inference_mode() { this_thread_inference = before_; }

private:
  bool before_;
};
/// Is this thread in inference mode?
inline bool is_inference_mode_enabled() { return this_thread_inference; }

} // namespace varve
