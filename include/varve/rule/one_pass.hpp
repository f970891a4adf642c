// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/dispatch/whole_call.hpp>
#include <varve/kernel/math.hpp>
#include <varve/rule/broadcasting.hpp>

/// @file
/// Elementwise functions that are written in operators, evaluated on the lanes of a register. A whole function, or its
/// gradient, is one pass over memory. Interpreters process the same source text.
namespace varve::detail {

/// The interpreter of lanes: it runs the kernels of elementwise operators on registers `V`.
template <class V>
struct in_lanes {
  using element = kernel::element_t<V>;
  static constexpr int level = 1;
  static constexpr char const* kind = "lanes";
  static constexpr bool alive() { return true; }
  template <class S>
  static constexpr S logical_shape(S const& s) {
    return s;
  }
  template <class X>
  static VARVE_INLINE V lanes_of(X const& x) {
    if constexpr (is_seen<X>) return x.extra;
    else return V(static_cast<element>(x));
  }
  template <class Op, class... X>
  VARVE_INLINE auto process(Op const&, X const&... x) const {
    using R = rules<typename Op::tag>;
    static_assert(R::kind == op_kind::pointwise, "varve: only elementwise operators run on the lanes of a register");
    using type = std::conditional_t<R::promote == promotion::comparison, bool, element>;
    return seen<in_lanes, type, V>{{}, {}, R::kernel(lanes_of(x)...)};
  }
};
/// Lanes as a value, to which varve's operators apply.
template <class V>
using lanes_value = seen<in_lanes<V>, kernel::element_t<V>, V>;

/// The interpreter of values with a tangent, for functions of one argument. The values are lanes or tensors.
struct in_tangent {
  static constexpr int level = 2;
  static constexpr char const* kind = "tangent";
  static constexpr bool alive() { return true; }
  template <class S>
  static constexpr S logical_shape(S const& s) {
    return s;
  }
  template <class X>
  static constexpr auto const& primal(X const& x) {
    if constexpr (at_level<X, level>) return x.value;
    else return x;
  }
  template <std::size_t I, class Op, class Y, class... X>
  static constexpr auto part(Op const& op, Y const& y, X const&... x) {
    using operand = std::remove_cvref_t<decltype(nth<I>(x...))>;
    if constexpr (at_level<operand, level>)
      return rules<typename Op::tag>::jvp(arg<I>, op, nth<I>(x...).extra, y, primal(x)...);
    else return none;
  }
  static constexpr auto sum(none_t const&) { return none; }
  template <class D>
  static constexpr auto sum(D const& d) {
    return d;
  }
  template <class D, class E, class... R>
  static constexpr auto sum(D const& d, E const& e, R const&... r) {
    if constexpr (is_none<D>) return sum(e, r...);
    else if constexpr (is_none<E>) return sum(d, r...);
    else return sum(add(d, e), r...);
  }
  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    auto const y = op(primal(x)...);
    if constexpr (constant_to_derivatives<typename Op::tag>) {
      return y;
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        auto const d = sum(part<I>(op, y, x...)...);
        using tangent = std::remove_cvref_t<decltype(d)>;
        if constexpr (is_none<tangent>) return y;
        else return seen<in_tangent, std::remove_cvref_t<decltype(y)>, tangent>{y, {}, d};
      }(std::index_sequence_for<X...>{});
    }
  }
};
/// Returns the derivative of `F{}(x, constants...)` by x, times `d`. An elementwise function has a diagonal Jacobian,
/// so this is also its pullback of the cotangent `d`.
template <class F, class D, class X, class... C>
constexpr auto derivative_times(D const& d, X const& x, C const&... constants) {
  return F{}(seen<in_tangent, X, D>{x, {}, d}, constants...).extra;
}

/// The function object that evaluates `F` on registers. `pullback_in_lanes` evaluates its pullback from a cotangent, x
/// and constants.
template <class F>
struct value_in_lanes {
  template <class V, class... C>
  VARVE_INLINE V operator()(V const& x, C const&... c) const {
    return in_lanes<V>::lanes_of(F{}(lanes_value<V>{{}, {}, x}, lanes_value<V>{{}, {}, c}...));
  }
};
template <class F>
struct pullback_in_lanes {
  template <class V, class... C>
  VARVE_INLINE V operator()(V const& g, V const& x, C const&... c) const {
    return in_lanes<V>::lanes_of(detail::derivative_times<F>(lanes_value<V>{{}, {}, g}, lanes_value<V>{{}, {}, x},
                                                             lanes_value<V>{{}, {}, c}...));
  }
};
template <class F, int Arity>
inline constexpr pointwise_info one_pass_of{"one pass",
                                            Arity,
                                            0,
                                            true,
                                            false,
                                            true,
                                            {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                             &kernel::contiguous<float, float, F, Arity>,
                                             &kernel::contiguous<double, double, F, Arity>, nullptr, nullptr}};

/// Returns `f(a, b)` for an `f` that is written in elementwise operators. Two floating tensors of one dtype and shape
/// take one pass if nothing watches their calls and nothing is registered for the operators `Part`.
template <class... Part, class F, class A, class B>
constexpr auto at_once(F const& f, A const& a, B const& b) {
  if constexpr (both_tensors<A, B>) {
    A const* const all[] = {&a, &b};
    if (are_unwatched(&a, 1) && are_unwatched(&b, 1) && are_floats(all, 2) && a.sizes() == b.sizes() &&
        are_built_in<Part...>())
      return run_pointwise(one_pass_of<value_in_lanes<F>, 2>, all);
  }
  return f(a, b);
}

/// An elementwise function `F{}(x, constants...)` as a whole call. `F` provides its name `op_name`, its number of
/// operands `arity`, and `is_built_in()`, which is true if nothing is registered for its operators.
template <class F>
struct whole_function {
  static tensor value(attributes const&, tensor const* const* x) {
    return run_pointwise(one_pass_of<value_in_lanes<F>, F::arity>, x);
  }
  static tensor pullback(int, attributes const&, tensor const& g, tensor const&, boxed_args const& x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      tensor const* const all[] = {&g, &x[static_cast<int>(K)]...};
      auto const body = [&] { return static_cast<tensor>(derivative_times<F>(g, x[static_cast<int>(K)]...)); };
      auto const kernel = [&] { return run_pointwise(one_pass_of<pullback_in_lanes<F>, F::arity + 1>, all); };
      if (!F::is_built_in() || !are_floats(all, 2) || !(g.sizes() == x[0].sizes())) return body();
      return whole_gradient(all, F::arity + 1, kernel, body);
    }(std::make_index_sequence<F::arity>{});
  }
  static constexpr saved_values saved{{(1 << F::arity) - 1}}; // the gradient of the first operand reads all operands
  static constexpr op_table table = whole_table(F::op_name, F::arity, saved, &pullback);
  /// Returns the result, or an undefined tensor if the body must run.
  template <class... C>
  static tensor call(tensor const& x, C const&... c) {
    tensor const* const first[] = {&x};
    if (!x.defined() || !are_floats(first, 1) || !F::is_built_in()) return {};
    return with_numbers(x, tensor::from_number(c)...);
  }

private:
  template <class... C>
  static tensor with_numbers(tensor const& x, C const&... c) {
    tensor const* const all[] = {&x, &c...};
    return whole_call(table, no_attributes, all, F::arity, &value);
  }
};
} // namespace varve::detail
