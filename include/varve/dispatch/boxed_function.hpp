// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <varve/dispatch/boxed.hpp>

namespace varve {

/// A function among the operands of a higher-order operator: tensors to tensors. Anything that can be called so converts to it; copies share it. (A
/// `std::function` of the same signature would cost every unit that includes this, used or not.)
class boxed_function {
public:
  boxed_function() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, boxed_function> && std::is_invocable_r_v<boxed_args, std::decay_t<F>&, boxed_args const&>) boxed_function(F&& f)
      : body_(new holder<std::decay_t<F>>(static_cast<F&&>(f))) {}
  boxed_function(boxed_function const& o) noexcept : body_(o.body_) {
    if (body_) body_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  boxed_function(boxed_function&& o) noexcept : body_(o.body_) { o.body_ = nullptr; }
  boxed_function& operator=(boxed_function o) noexcept {
    body* const b = body_;
    body_ = o.body_;
    o.body_ = b;
    return *this;
  }
  ~boxed_function() {
    if (body_ && body_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) body_->destroy(body_);
  }

  /// Is there a function?
  explicit operator bool() const { return body_; }
  boxed_args operator()(boxed_args const& x) const { return body_->call(body_, x); }

private:
  struct body {
    boxed_args (*call)(body*, boxed_args const&);
    void (*destroy)(body*);
    std::atomic<int> owners{1};
  };
  template <class F>
  struct holder : body {
    F f;
    template <class G>
    explicit holder(G&& g) : body{&run, &end}, f(static_cast<G&&>(g)) {}
    static boxed_args run(body* b, boxed_args const& x) { return static_cast<holder*>(b)->f(x); }
    static void end(body* b) { delete static_cast<holder*>(b); }
  };
  body* body_ = nullptr;
};

} // namespace varve
