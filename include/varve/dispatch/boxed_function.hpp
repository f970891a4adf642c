// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/boxed.hpp>

#include <atomic>

namespace varve {

/// A shared function of a signature; specialized below for `R(A...)`.
template <class Signature>
class shared_function;
/// A function of one signature. Anything callable with that signature converts to it, and copies share the callable.
/// (`std::function` would cost compile time in every translation unit that includes this, used or not.)
template <class R, class... A>
class shared_function<R(A...)> {
public:
  constexpr shared_function() = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, shared_function> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, A...>)
  shared_function(F&& f) : body_(new holder<std::decay_t<F>>(static_cast<F&&>(f))) {}
  constexpr shared_function(shared_function const& o) noexcept : body_(o.body_) {
    if (body_) body_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  constexpr shared_function(shared_function&& o) noexcept : body_(o.body_) { o.body_ = nullptr; }
  constexpr shared_function& operator=(shared_function o) noexcept {
    body* const b = body_;
    body_ = o.body_;
    o.body_ = b;
    return *this;
  }
  constexpr ~shared_function() {
    if (body_ && body_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) body_->destroy(body_);
  }

  /// True if there is a function.
  constexpr explicit operator bool() const { return body_; }
  /// True if the callable is of type `F`.
  template <class F>
  bool holds() const {
    return body_ && body_->call == &holder<F>::run;
  }
  /// Returns the callable if it is of type `F`, else null.
  template <class F>
  F const* target() const {
    return holds<F>() ? &static_cast<holder<F> const*>(body_)->f : nullptr;
  }
  template <class F>
  F* target() {
    return holds<F>() ? &static_cast<holder<F>*>(body_)->f : nullptr;
  }
  /// True if both are copies of one function.
  constexpr bool is(shared_function const& o) const { return body_ == o.body_; }
  R operator()(A... x) const { return body_->call(body_, static_cast<A>(x)...); }

private:
  struct body {
    R (*call)(body*, A...);
    void (*destroy)(body*);
    std::atomic<int> owners{1};
  };
  template <class F>
  struct holder : body {
    F f;
    template <class G>
    explicit holder(G&& g) : body{&run, &end}, f(static_cast<G&&>(g)) {}
    static R run(body* b, A... x) { return static_cast<holder*>(b)->f(static_cast<A>(x)...); }
    static void end(body* b) { delete static_cast<holder*>(b); }
  };
  body* body_ = nullptr;
};

/// A function from tensors to tensors that is an operand of a higher-order operator.
using boxed_function = shared_function<boxed_args(boxed_args const&)>;
/// A function that stores no values: those that it captured are among its operands.
struct closed_function {
  boxed_function f;
  boxed_args operator()(boxed_args const& x) const { return f(x); }
};

} // namespace varve
