// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>

/// @file
/// Scopes that remove layers from the stacks of the thread or change its keys, and restore everything on every exit.
namespace varve {

/// A scope without the top layer of a stack, which is restored on every exit.
class popped {
public:
  explicit popped(layer_stack& stack) : stack_(stack), saved_(stack.top), grad_mode_(this_thread_state.grad_mode) {
    detail::set_top(stack_, saved_->below);
    if (saved_->kind->records) saved_->grad_mode = grad_mode_;
    this_thread_state.grad_mode = grad_mode_ && saved_->outer_grad_mode;
  }
  popped(popped const&) = delete;
  popped& operator=(popped const&) = delete;
  ~popped() {
    detail::set_top(stack_, saved_);
    this_thread_state.grad_mode = grad_mode_;
  }
  layer& top() const { return *saved_; }

private:
  layer_stack& stack_;
  layer* saved_;
  bool grad_mode_;
};

/// A scope in which a stack is empty. The stack is restored on every exit.
class emptied {
public:
  explicit emptied(layer_stack& stack) : stack_(stack), saved_(stack.top) { detail::set_top(stack_, nullptr); }
  emptied(emptied const&) = delete;
  emptied& operator=(emptied const&) = delete;
  ~emptied() { detail::set_top(stack_, saved_); }

private:
  layer_stack& stack_;
  layer* saved_;
};

/// A scope with other included and excluded keys of the thread. The previous keys are restored on every exit.
class key_guard {
public:
  key_guard(dispatch_key_set include, dispatch_key_set exclude)
      : included_(this_thread_state.included), excluded_(this_thread_state.excluded) {
    this_thread_state.included = include;
    this_thread_state.excluded = exclude;
  }
  key_guard(key_guard const&) = delete;
  key_guard& operator=(key_guard const&) = delete;
  ~key_guard() {
    this_thread_state.included = included_;
    this_thread_state.excluded = excluded_;
  }

private:
  dispatch_key_set included_, excluded_;
};
/// A scope that adds keys to all calls of this thread, whatever their arguments. With `private_use`, factories allocate
/// on that backend.
struct include_keys : key_guard {
  explicit include_keys(dispatch_key_set k) : key_guard(this_thread_state.included | k, this_thread_state.excluded) {}
};
/// A scope in which all calls of this thread skip some keys.
struct exclude_keys : key_guard {
  explicit exclude_keys(dispatch_key_set k) : key_guard(this_thread_state.included, this_thread_state.excluded | k) {}
};
/// A scope whose calls bypass modes and subclasses.
struct no_dispatch : exclude_keys {
  no_dispatch() : exclude_keys({dispatch_key::dispatch_mode, dispatch_key::subclass}) {}
};

} // namespace varve
