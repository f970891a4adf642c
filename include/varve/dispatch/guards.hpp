// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/thread_state.hpp>

/// @file
/// Scopes that take layers off the stacks of the thread or change its keys, and put all back on every exit.
namespace varve {

/// Takes the top of a stack away while it runs, and puts it back on every exit (MD-8: pop, not key-juggling).
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

/// Takes a whole stack away for the life of the object.
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

/// Sets the included and excluded keys of the thread for the life of the object; on every exit they are as before
/// (DK-9).
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
/// Calls of this thread have the keys, whatever their arguments: a key `private_use` makes factories allocate there.
struct include_keys : key_guard {
  explicit include_keys(dispatch_key_set k) : key_guard(this_thread_state.included | k, this_thread_state.excluded) {}
};
/// Calls of this thread pass over the keys.
struct exclude_keys : key_guard {
  explicit exclude_keys(dispatch_key_set k) : key_guard(this_thread_state.included, this_thread_state.excluded | k) {}
};
/// Neither modes nor subclasses see the calls of this scope (MD-13).
struct no_dispatch : exclude_keys {
  no_dispatch() : exclude_keys({dispatch_key::dispatch_mode, dispatch_key::subclass}) {}
};

} // namespace varve
