// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/dispatch/boxed.hpp>
#include <varve/dispatch/dispatch.hpp>

namespace varve {

/// The base of user-written modes: `struct counting : dispatch_mode<counting> { auto process(auto op, auto const&...
/// args) { ...; return op(args...); } };`. In `process`, `op(args...)` calls the operator below the mode, `op.name()`
/// is its name, and `for_each_value(f, args...)` visits the operands, or a result. One `process` serves static values
/// and tensors. `with(m, f, x...)` resolves it at compile time; `mode_guard on{m}` switches it on for this thread's
/// tensors.
template <class Derived>
struct dispatch_mode {};

/// The value that a mode or a subclass returns to decline a call; the next candidate is then called. For calls on
/// tensors the return type of the handler is `tensor`.
struct not_implemented_t {
  operator tensor() const { return {}; }
};
inline constexpr not_implemented_t not_implemented{};

/// A mode as an interpreter: opens every value, passes the call to the user's `process`, and closes the result.
template <class Lv, class M>
struct mode_interpreter : Lv {
  static constexpr char const* kind = "mode";
  static constexpr bool watches = true;
  M* mode = nullptr;

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::mode(*this, op, x...);
    } else {
      using Y = decltype(mode->process(op, this->open_plain(x)...));
      if constexpr (!std::is_same_v<Y, not_implemented_t>)
        return this->close(*this, mode->process(op, this->open_plain(x)...));
      else if constexpr ((std::is_same_v<X, boxed_args> || ...))
        return mode->process(op, this->open_plain(x)...), tensor();
      else return mode->process(op, this->open_plain(x)...), this->close(*this, op(this->open_plain(x)...));
    }
  }
  template <class V>
  constexpr auto lift(V const& v) const {
    return this->close(*this, v);
  }
};

/// Calls `f` on every value of a call: on its operands, or on its result. Values may be separate (static values), boxed
/// (tensors), or a tree (the results of an operator with functions).
template <class F, class... X>
constexpr void for_each_value(F&& f, X const&... x) {
  auto visit = [&]<class V>(V const& v) {
    if constexpr (value<V>) f(v);
    else if constexpr (is_tree_node<V>) tree_for_each(f, v);
    else
      for (auto const& t : v) f(t);
  };
  (visit(x), ...);
}

} // namespace varve
